"""The one door to apptainer and singularity."""
