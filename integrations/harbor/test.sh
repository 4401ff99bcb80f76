#!/bin/sh
# test.sh [FLAG…] runs the task beside it in Harbor. A script plays the model. Flags go to harbor run, such as -e podman.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for need in harbor coder; do
	command -v $need > /dev/null || { echo "skipped: $need is not on the PATH"; exit 0; }
done
jobs=$(mktemp -d)
trap 'rm -rf "$jobs"' EXIT
PYTHONPATH=$here harbor run --path "$here/task" --agent coder_agent:Coder --agent-kwarg flags='--script /opt/model' \
	--jobs-dir "$jobs" --job-name test --quiet --yes "$@"
python3 - "$jobs"/test/*__*/result.json <<'END'
import json, sys

trial = json.load(open(sys.argv[1]))
agent, result = trial["agent_info"], trial["agent_result"]
assert trial["exception_info"] is None, trial["exception_info"]
assert trial["verifier_result"]["rewards"] == {"reward": 1.0}, trial["verifier_result"]
assert agent["name"] == "coder" and agent["version"] != "unknown", agent
tokens = [result[key] for key in ("n_input_tokens", "n_cache_tokens", "n_output_tokens")]
assert tokens == [440, 260, 42], tokens
print("ok: coder", agent["version"], "solved the task")
END
