"""See launch.py. $PACKAGES has a folder for each package, with its programs."""

import os
import shlex
import subprocess


class Node:
    def __init__(self, package, executable, prefix="", additional_env=None):
        program = os.path.join(os.environ["PACKAGES"], package, executable)
        self.command = shlex.split(prefix) + [program]
        self.environment = {**os.environ, **(additional_env or {})}

    def run(self):
        return subprocess.run(self.command, env=self.environment).returncode
