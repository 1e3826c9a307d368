"""Every key of a recipe: what it becomes, and what is said of every kind of mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.recipes.catalogue import Catalogue
from toolkit.recipes.load import load_recipe
from toolkit.recipes.model import Base, FileCopy, JobDefaults, Recipe
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Verdict
from toolkit.support.paths import shipped

DEBIAN = Base("debian-12", "debootstrap", "bookworm")
OTHER = Base("other", "docker", "a/b:1")
BASES = {"debian-12": DEBIAN, "tensorflow-2.15": OTHER}


def recipe(directory: Path, text: str, **more: Base) -> Recipe:
    path = directory / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return load_recipe(path, BASES, **more)


def test_every_key_arrives(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    text = """
description = "Mine"
base = "debian-12"
apt = ["graphviz", "libgl1:amd64", "g++=4:12.2.0-3"]
packages = ["numpy>=1.26,<2", "keras[extra]==2.3.1; python_version < '4'", "x @ https://example.org/x.whl"]
post = '''
echo done
'''
[[files]]
from = "data"
to = "/opt/data"
[environment]
LEVEL = "3"
[job]
command = ["python", "train.py"]
gpus = "tesla:1"
nodes = 2
time = "1:00:00"
mem = "16G"
cpus_per_task = 4
partition = "gpu"
account = "lab"
binds = ["/scratch"]
modules = ["cuda/12.4"]
[require]
verdict = "gpu-ready"
[imports]
skip = ["Kaggle", "my_package", "kaggle"]
[lock]
prefer = ["numpy==1.26.4", "six==1.16; python_version < '4'"]
"""
    assert recipe(tmp_path, text) == Recipe(
        name="mine",
        path=tmp_path / "mine.toml",
        base=DEBIAN,
        description="Mine",
        apt=("graphviz", "libgl1:amd64", "g++=4:12.2.0-3"),
        packages=("numpy>=1.26,<2", "keras[extra]==2.3.1; python_version < '4'", "x @ https://example.org/x.whl"),
        post="echo done\n",
        files=(FileCopy(tmp_path / "data", "/opt/data"),),
        environment=(("LEVEL", "3"),),
        job=JobDefaults(
            command=("python", "train.py"),
            resources={
                "nodes": 2,
                "cpus_per_task": 4,
                "gpus": "tesla:1",
                "mem": "16G",
                "time": "1:00:00",
                "partition": "gpu",
                "account": "lab",
            },
            binds=("/scratch",),
            modules=("cuda/12.4",),
        ),
        verdict=Verdict.GPU_READY,
        import_skip=("kaggle", "my-package"),
        prefer=("numpy==1.26.4", "six==1.16; python_version < '4'"),
    )


def test_a_base_alone_is_a_recipe_and_may_be_replaced(tmp_path: Path) -> None:
    assert recipe(tmp_path, 'base = "debian-12"') == Recipe("mine", tmp_path / "mine.toml", DEBIAN)
    assert recipe(tmp_path, 'base = "not known here"', base=OTHER).base is OTHER
    assert recipe(tmp_path, "", base=OTHER).base is OTHER


def test_check_is_a_list_of_words(tmp_path: Path) -> None:
    found = recipe(tmp_path, 'base = "debian-12"\n[check]\ncommand = ["python", "-c", "import a\\nb()"]')
    assert (found.check, found.needs_guard) == (("python", "-c", "import a\nb()"), True)


def test_a_command_may_be_one_text_as_a_shell_would_split_it(tmp_path: Path) -> None:
    found = recipe(tmp_path, 'base = "debian-12"\n[job]\ncommand = "python train.py --name \'a b\'"')
    assert found.job.command == ("python", "train.py", "--name", "a b")


MISTAKES = [
    ("", "mine.toml: base: is missing: name the base to start from"),
    ('base = "debain-12"', 'mine.toml:1: base: there is no base "debain-12". Did you mean "debian-12"?'),
    ("base = 3", "mine.toml:1: base: should be text in quotes, not 3"),
    ('base = "x\\u0000"', "mine.toml:1: base: the value contains the control character"),
    ('\npakages = ["x"]', 'mine.toml:2: pakages: there is no such key. Did you mean "packages"?'),
    ('"a\\nb" = 1', r"mine.toml:1: 'a\nb': there is no such key"),
    ("description = []", "mine.toml:1: description: should be text"),
    ('packages = "numpy"', "mine.toml:1: packages: should be a list, not 'numpy'"),
    ("packages = [1]", "mine.toml:1: packages: should be a list of texts"),
    ('packages = ["numpy=1.2"]', 'mine.toml:1: packages: "numpy=1.2" is not a package requirement'),
    ('packages = ["-r req.txt"]', 'mine.toml:1: packages: "-r req.txt" is not a package requirement'),
    ('packages = ["--index-url=x"]', 'packages: "--index-url=x" is not a package requirement'),
    ('packages = ["numpy; rm -rf /"]', "is not a package requirement"),
    ('packages = ["numpy\\n"]', "mine.toml:1: packages: a requirement contains the control character"),
    ('packages = [""]', "is not a package requirement"),
    ('apt = ["Graphviz"]', "mine.toml:1: apt: 'Graphviz' is not the name of a Debian package"),
    ('apt = ["a b"]', "'a b' is not the name"),
    ('apt = ["-y"]', "'-y' is not the name"),
    ('apt = ["curl; id"]', "'curl; id' is not the name"),
    ("post = ['a']", "mine.toml:1: post: should be text"),
    ('files = ["x"]', "mine.toml:1: files: should be [[files]] tables, not 'x'"),
    ("[files]", "mine.toml:1: files: should be a list"),
    ('[[files]]\nfrom = "mine.toml"', 'mine.toml:1: files[1]: needs both "from" and "to"'),
    ('[[files]]\nfrm = "mine.toml"', 'files[1].frm: there is no such key. Did you mean "from"?'),
    (
        '[[files]]\nfrom = "~no-such-user/x"\nto = "/x"',
        "files[1].from: ~no-such-user/x: there is no such user, or it has no home directory",
    ),
    ('[[files]]\nfrom = "mine.toml"\nto = "x"', "mine.toml:3: files[1].to: should be an absolute path in the image"),
    ("imports = 3", "mine.toml:1: imports: should be a table"),
    ('[lock]\nprefer = ["numpy>=1"]', 'mine.toml:2: lock.prefer: "numpy>=1" is not an exact version, such as numpy=='),
    ('[lock]\nprefer = ["numpy==1.*"]', 'lock.prefer: "numpy==1.*" is not an exact version'),
    ('[lock]\nprefer = ["numpy==1,<2"]', "is not an exact version"),
    ('[lock]\nprefer = ["x @ https://x.example/x.zip"]', "is not an exact version"),
    ('[lock]\nprefer = ["numpy===first"]', "is not an exact version"),
    ("[lock]\nprefers = []", 'mine.toml:2: lock.prefers: there is no such key. Did you mean "prefer"?'),
    ('[imports]\nskp = ["a"]', 'mine.toml:2: imports.skp: there is no such key. Did you mean "skip"?'),
    ('[imports]\nskip = "kaggle"', "mine.toml:2: imports.skip: should be a list"),
    ('[imports]\nskip = ["kaggle==1"]', "mine.toml:2: imports.skip: 'kaggle==1' is not a package name"),
    ("environment = 3", "mine.toml:1: environment: should be a table"),
    ("[environment]\nA = 3", "mine.toml:2: environment.A: should be text"),
    ('[environment]\n"A B" = "x"', "mine.toml:2: environment.A B: is not a valid variable name"),
    ('[environment]\nHF_TOKEN = "x"', "mine.toml:2: environment.HF_TOKEN: would write a secret to the image"),
    ('[environment]\nDB_PWD = "x"', "mine.toml:2: environment.DB_PWD: would write a secret to the image"),
    ('[environment]\nA = "ghp_0123456789abcdef"', "mine.toml:2: environment.A: would write a secret to the image"),
    ('[environment]\nHF_TOKEN = "$HF_TOKEN"', "mine.toml:2: environment.HF_TOKEN: would write a secret to the image"),
    ('post = "WANDB_API_KEY=geheim python x.py"', "mine.toml:1: post: has a secret (WANDB_API_KEY)"),
    ('description = "log in with HF_TOKEN=geheim"', "mine.toml:1: description: has a secret (HF_TOKEN)"),
    ('[job]\ncommand = "python x.py --api-key geheim"', "mine.toml:2: job.command: has a secret (--api-key)"),
    ('[check]\ncommand = ["sh", "-c", "TOKEN=geheim x"]', "mine.toml:2: check.command: has a secret (TOKEN)"),
    ('[check]\ncommand = "python x.py"', "mine.toml:2: check.command: should be a list, not 'python x.py'"),
    ("[check]\ncommand = []", "mine.toml:2: check.command: should be the words of a command"),
    ('[check]\ncommand = ["", "x"]', "mine.toml:2: check.command: should be the words of a command"),
    ('[check]\ncommand = ["a", "b\\u0000"]', "mine.toml:2: check.command: should be the words of a command"),
    ('[check]\ncommand = ["sleep", 1]', "mine.toml:2: check.command: should be a list of texts in quotes"),
    ("[check]", "mine.toml:1: check.command: should be the words of a command"),
    ('[check]\ncomand = ["x"]', 'mine.toml:2: check.comand: there is no such key. Did you mean "command"?'),
    ("check = ['x']", "mine.toml:1: check: should be a table"),
    ('[job]\ncommand = ["sh", "-c", "TOKEN=geheim x"]', "mine.toml:2: job.command: has a secret (TOKEN)"),
    ('[environment]\n1A = "x"', "environment.1A: is not a valid variable name"),
    ('[environment]\nA = "x\\ny"', "mine.toml:2: environment.A: the value contains the control character"),
    ('[environment]\nA = "$HOME/x"', "mine.toml:2: environment.A: contains $HOME, which no shell expands"),
    ('[environment]\nA = "a:$A"', "mine.toml:2: environment.A: contains $A, which"),
    ('[environment]\nA = "${HOME:-x}/y"', "mine.toml:2: environment.A: contains ${HOME:-x}, which"),
    ('[environment]\nPATH = "/a:$PATHS"', "environment.PATH: contains $PATHS, which"),
    ('[environment]\nPATH = "/a$PATH"', "environment.PATH: contains $PATH, which"),
    ('[environment]\nPATH = "$PATH:${HOME}/b"', "environment.PATH: contains $PATH, which"),
    ('[environment]\nPATH = "/opt/bin:/usr/bin"', "environment.PATH: lacks /bin: the image's programs"),
    ('[environment]\nPATH = ""', "environment.PATH: lacks /usr/bin and /bin: the image's programs"),
    ("job = 3", "mine.toml:1: job: should be a table"),
    ('[job]\ntimes = "1"', 'mine.toml:2: job.times: there is no such key. Did you mean "time"?'),
    ("[job]\ngpus = -1", "mine.toml:2: job.gpus: should be a number such as 1"),
    ("[job]\ngpus = true", "job.gpus: should be a number"),
    ("[job]\ngpus = 1.5", "job.gpus: should be a number"),
    ("[job]\nnodes = 0", "mine.toml:2: job.nodes: should be at least 1, not 0"),
    ('[job]\nnodes = "2"', "mine.toml:2: job.nodes: should be a whole number"),
    ("[job]\ntime = 30", "mine.toml:2: job.time: should be text"),
    ('[job]\ncommand = "python \'"', "mine.toml:2: job.command: is not a command line: No closing quotation"),
    ("[job]\ncommand = 3", "mine.toml:2: job.command: should be a list"),
    ('[job]\nbinds = "/x"', "mine.toml:2: job.binds: should be a list"),
    ("job = { gpus = -1 }", "mine.toml:1: job.gpus: should be a number"),
    (
        '[require]\nverdict = "gpu-redy"',
        'require.verdict: should be one of gpu-ready, cpu-only, no-framework, not "gpu-',
    ),
    ("[require]\nx = 1", "mine.toml:2: require.x: there is no such key"),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES, ids=[text[:40] for text, _ in MISTAKES])
def test_recipe_mistake_names_file_line_and_key(tmp_path: Path, text: str, expected: str) -> None:
    needs_base = "base" not in text and text
    with pytest.raises(WrongInput) as caught:
        recipe(tmp_path, text, **({"base": DEBIAN} if needs_base else {}))
    assert expected in caught.value.message
    assert caught.value.message.startswith(str(tmp_path / "mine.toml"))
    assert caught.value.message.isprintable()


def test_all_shipped_recipes_are_right() -> None:
    catalogue = Catalogue(Path("/nowhere"), shipped("defs"))
    assert set(catalogue.paths()) >= {"keras-bert", "tensorflow", "pytorch", "jax", "chainer", "demo"}
    for name in catalogue.paths():
        found = catalogue.recipe(name)
        assert found.description
        assert found.job.command
        assert found.base.source, "every fact of a base says where it comes from"
        assert found.job.resources["gpus"] == (0 if name == "demo" else 1)


def test_a_package_s_address_with_a_password_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="the URL of x contains a user name or a password") as refused:
        recipe(tmp_path, 'base = "debian-12"\npackages = ["x @ https://ann:S3CRET@h.example/x-1-py3-none-any.whl"]\n')
    assert "S3CRET" not in refused.value.message


@pytest.mark.parametrize(
    "line",
    [
        *('PATH = "/opt/bin:$PATH"', 'PATH = "${PATH}:/opt/bin"', 'LD_LIBRARY_PATH = "/a b:$LD_LIBRARY_PATH:/c"'),
        *('PATH = "/opt/bin:/usr/bin/:/bin"', 'PRICE = "5$"', 'PATTERN = "^a$|$1"', 'ODD = "$(id) `id` ${"'),
    ],
)
def test_a_value_that_means_what_it_says_is_taken(tmp_path: Path, line: str) -> None:
    assert len(recipe(tmp_path, f"[environment]\n{line}", base=DEBIAN).environment) == 1


@pytest.mark.parametrize("key", ["arch", "gpu"])
def test_target_of_another_type_is_refused_once_with_both_types(tmp_path: Path, key: str) -> None:
    with pytest.raises(WrongInput) as caught:
        recipe(tmp_path, f'base = "debian-12"\n[target]\n{key} = 1\n')
    assert caught.value.message.count("mine.toml:3") == 1
    assert "should be text in quotes, or a list of such texts, not 1" in caught.value.message
