"""An image holds what it was built from: a build from its recipe and lock, elsewhere, gives the same packages."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from toolkit.inventory.formats.sif import DataType, read_sif

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

RECIPE = """\
# https://ann:secret@example.org is where we are
base = "{base}"  # ours
packages = ["six"]

[[files]]
from = "{outside}"
to = "/opt/mine/"

[job]
command = ["python3", "/opt/mine/table.csv", "--out=/home/ann"]
account = "p4711"
gpus = 0
"""


def test_image_is_built_again_from_its_own_recipe_and_lock(builder: User, work: Path, base_image: Path) -> None:
    project, again = work / "project", work / "again"
    (project / "defs").mkdir(parents=True)
    (work / "table.csv").write_text("1,2\n")
    recipe = RECIPE.format(base=base_image, outside=work / "table.csv")
    (project / "defs/mine.toml").write_text(recipe)
    builder.ctk("build", "mine", cwd=project)
    assert "mine.sif is up to date" in builder.ctk("build", "mine", cwd=project).stdout

    document = read_sif(project / "mine.sif").json_object("ctk.json")
    assert document is not None
    record = json.dumps(document)
    for of_host in (str(work), str(base_image.parent), "/home/ann", "secret", "p4711"):
        assert of_host not in record

    assert document["tools"]["installer"].startswith("uv ")

    image = project / "mine.sif"
    done = builder.ctk("inspect", image, "--recipe", "--lock", "-o", again / "defs", cwd=work)
    needed = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert needed == ["again/defs/table.csv", f"again/defs/{base_image.name}"]
    shutil.copy(work / "table.csv", again / "defs")
    (again / "defs" / base_image.name).symlink_to(base_image)
    builder.ctk("build", "mine", "--locked", "--flat", cwd=again)
    assert "The same" in builder.ctk("diff", image, again / "mine.sif", "--files", cwd=work).stdout

    bills = [bill_of(builder, found) for found in (image, again / "mine.sif")]
    assert bills[0] == bills[1]
    assert '"pkg:pypi/six@' in bills[0]
    written = builder.ctk("audit", image, "--sbom", "bill.json", "--allow", "no-framework", cwd=work)
    assert (work / "bill.json").read_text() == bills[0]
    assert ("read only its base" in written.stderr) == bool(document["layers"])


def bill_of(user: User, image: Path) -> str:
    """The bill of materials in an image, as the runtime reads it."""
    [found] = read_sif(image).of_type(DataType.SBOM)
    listed = user.run("apptainer", "sif", "list", image, cwd=image.parent).stdout
    assert "|SBOM (cyclonedx-json)" in listed
    return user.run("apptainer", "sif", "dump", str(found.id), image, cwd=image.parent).stdout
