"""The plugin of pytest adds a marker and a fixture to tests, and nothing to the command: by that
it measures, so that it stands on no package."""

from retrieval_bench.capabilities import Capability

CAPABILITY = Capability()
