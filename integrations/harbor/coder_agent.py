"""coder as an agent of Harbor, which runs Terminal-Bench and other benchmarks.

    PYTHONPATH=integrations/harbor harbor run -d DATASET -a coder_agent:Coder -m openai/gpt-5.4

docs/how-to/run-a-benchmark.md explains the options.
"""

import json
import shlex
import shutil
from pathlib import Path

import certifi
from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import (
    AgentAuthenticationError,
    BaseInstalledAgent,
    ErrorPattern,
    with_prompt_template,
)

CERTIFICATES = "/installed-agent/certificates.pem"
STREAM = "coder.jsonl"

# Exit codes of a turn that ended by itself: done, a call denied, out of steps, not verified, out of budget.
# The verifier judges what such a turn left. Any other code is an error of the trial.
ENDED = (0, 30, 53, 57, 58)

# The container is the boundary, as for every agent that Harbor installs: commands may change all of it.
FLAGS = ["--bare", "--mode", "yolo", "-s", "safety.sandbox=off", "--output-format", "stream-json"]

PRESETS = {"google": "gemini", "mistralai": "mistral", "moonshotai": "moonshot", "x-ai": "xai"}


class Coder(BaseInstalledAgent):
    """Installs the program of this machine in the task's container and runs one turn."""

    capabilities = AgentCapabilities(resume=True, mcp_servers=True)
    ERROR_PATTERNS = [
        ErrorPattern(r"API key was rejected|no API key", AgentAuthenticationError),
        *BaseInstalledAgent.ERROR_PATTERNS,
    ]

    def __init__(self, *args, program: str | None = None, flags: str = "", **kwargs):
        super().__init__(*args, **kwargs)
        self._program = program or shutil.which("coder")
        self._more_flags = shlex.split(flags)

    @staticmethod
    def name() -> str:
        return "coder"

    def get_version_command(self) -> str:
        return "coder version"

    def parse_version(self, stdout: str) -> str:
        return stdout.split()[1]

    async def install(self, environment) -> None:
        if not self._program:
            raise RuntimeError("coder is not on the PATH: name the program with --ak program=FILE")
        await environment.upload_file(Path(self._program), "/installed-agent/coder")
        await environment.upload_file(Path(certifi.where()), CERTIFICATES)
        await self.exec_as_root(
            environment,
            "install -D -m 755 /installed-agent/coder /usr/local/bin/coder"
            f" && chmod 755 /installed-agent && chmod 644 {CERTIFICATES}",
        )

    @with_prompt_template
    async def run(self, instruction: str, environment, context) -> None:
        flags, env = self.model()
        flags = ["-p", *FLAGS, *flags, *self.mcp(), *self._more_flags]
        if self._resume:
            flags.append("--continue")
        logs = self.environment_logs_dir
        env["CODER_HOME"] = str(logs / "coder")
        await self.exec_as_agent(
            environment,
            f"{shlex.join(['coder', *flags, '--', instruction])} < /dev/null >> {logs / STREAM} || code=$?;"
            f" case ${{code:-0}} in {'|'.join(map(str, ENDED))}) ;; *) exit $code;; esac",
            env=env,
        )

    def model(self) -> tuple[list[str], dict[str, str]]:
        """Flags and variables for the model, which Harbor names PROVIDER/MODEL."""
        names = ["CODER_BASE_URL", "CODER_API_KEY"]
        flags = ["-s", f"provider.ca_file={CERTIFICATES}"]
        provider, slash, model = (self.model_name or "").partition("/")
        if self._get_env("CODER_BASE_URL") or not slash:
            model = self.model_name
        else:
            provider = PRESETS.get(provider, provider)
            flags += ["--provider", provider]
            names = [f"{provider.upper()}_{name}" for name in ("API_KEY", "BASE_URL")]
        if model:
            flags += ["--model", model]
        return flags, {name: value for name in names if (value := self._get_env(name))}

    def mcp(self) -> list[str]:
        """Flags for the MCP servers that the task names."""
        servers = {}
        for server in self.mcp_servers:
            if server.transport == "stdio":
                servers[server.name] = {"command": server.command, "args": server.args}
            else:
                kind = "sse" if server.transport == "sse" else "http"
                servers[server.name] = {"type": kind, "url": server.url}
        return ["--mcp-config", json.dumps({"mcpServers": servers})] if servers else []

    def populate_context_post_run(self, context) -> None:
        """Reads tokens and costs from the stream. A turn that was cut off has no result: its replies count."""
        stream = self.logs_dir / STREAM
        if not stream.is_file():
            return
        replies, results = [], []
        for line in stream.read_text().splitlines():
            try:
                message = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off
            if message["type"] == "assistant":
                replies.append(message["message"]["usage"])
            elif message["type"] == "result":
                replies = []
                results.append(message)
        usage = [result["usage"] for result in results] + replies
        cached = sum(one["cache_read_input_tokens"] for one in usage)
        context.n_input_tokens = cached + sum(one["input_tokens"] for one in usage)
        context.n_cache_tokens = cached
        context.n_output_tokens = sum(one["output_tokens"] for one in usage)
        if results and not replies and all(result["total_cost_known"] for result in results):
            context.cost_usd = sum(result["total_cost_usd"] for result in results)
