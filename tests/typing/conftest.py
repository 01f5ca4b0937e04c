"""What is checked here is not to be run."""

collect_ignore = ["project.py"]
