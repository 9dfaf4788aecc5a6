"""In the place of ROS 2's launch: no more than the recipes use. Run as 'launch.py FILE', it does with the
description in FILE what 'ros2 launch' does with it: starts each node by its prefix and its program."""

import importlib.util
import sys


class LaunchDescription:
    def __init__(self, entities):
        self.entities = entities


def main(path):
    spec = importlib.util.spec_from_file_location("description", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return max(node.run() for node in module.generate_launch_description().entities)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
