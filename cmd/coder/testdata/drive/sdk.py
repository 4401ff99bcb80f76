# A session driven by the SDK: permissions, changed arguments, hooks, a server in
# this process, an interrupt, another model, another mode.
import asyncio, os, sys
from claude_agent_sdk import (
    AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, PermissionResultAllow, PermissionResultDeny,
    ResultMessage, SystemMessage, ToolUseBlock, create_sdk_mcp_server, query, tool,
)

coder, script, script2 = sys.argv[1:4]
asked, hooked, models, inits = [], [], [], []


async def decide(name, given, context):
    asked.append((name, os.path.basename(given.get("file_path", ""))))
    if name == "Write" and given["file_path"].endswith("no.txt"):
        return PermissionResultDeny(message="not that one")
    if name == "Write" and given["file_path"].endswith("old.txt"):
        return PermissionResultAllow(updated_input={**given, "file_path": given["file_path"].replace("old", "new")})
    if name == "Write" and given["file_path"].endswith("always.txt"):
        return PermissionResultAllow(updated_permissions=context.suggestions[:1])
    return PermissionResultAllow()


async def before(given, call, context):
    hooked.append((given["hook_event_name"], given["tool_name"]))
    if given["tool_name"] == "Bash" and "forbidden" in given["tool_input"]["command"]:
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "the hook says no"}}
    return {}


async def after(given, call, context):
    hooked.append((given["hook_event_name"], given["tool_name"]))
    return {}


@tool("add", "adds two numbers", {"a": float, "b": float})
async def add(args):
    return {"content": [{"type": "text", "text": f"the sum is {args['a'] + args['b']}"}]}


async def turn(client):
    async for m in client.receive_response():
        if isinstance(m, SystemMessage) and m.subtype == "init":
            inits.append(m.data)
        if isinstance(m, AssistantMessage):
            models.append(m.model)
        if isinstance(m, ResultMessage):
            return m


async def main():
    options = ClaudeAgentOptions(
        cli_path=coder, can_use_tool=decide, max_turns=20, extra_args={"script": script, "unheard-of": "x"},
        allowed_tools=["mcp__calc__add"], mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])},
        hooks={"PreToolUse": [HookMatcher(hooks=[before])], "PostToolUse": [HookMatcher(matcher="Write", hooks=[after])]},
    )
    async with ClaudeSDKClient(options) as client:
        info = await client.get_server_info()
        assert any(c["name"] == "compact" for c in info["commands"]), info
        await client.query("write them")
        r = await turn(client)
        assert r.subtype == "success" and r.result == "all written", r
        assert [d["tool_name"] for d in r.permission_denials] == ["Write", "Bash"], r.permission_denials
        assert ("Write", "no.txt") in asked and ("Write", "old.txt") in asked and ("Write", "always.txt") in asked, asked
        assert len([a for a in asked if a[1] == "always.txt"]) == 1, asked
        assert not any(a[0].startswith("mcp__") for a in asked), asked
        assert ("PreToolUse", "Bash") in hooked and ("PostToolUse", "Write") in hooked, hooked
        assert os.path.exists("new.txt") and not os.path.exists("old.txt") and not os.path.exists("no.txt")
        assert inits[0]["permissionMode"] == "default" and "Bash" in inits[0]["tools"], inits[0]

        await client.set_model("another")
        await client.set_permission_mode("acceptEdits")
        await client.query("write one more")
        r = await turn(client)
        assert r.result == "no question needed" and models[-1] == "another", (r, models)
        assert inits[-1]["permissionMode"] == "acceptEdits" and inits[-1]["model"] == "another", inits[-1]
        assert not [a for a in asked if a[1] == "more.txt"] and os.path.exists("more.txt"), asked
        status = await client.get_mcp_status()
        assert status["mcpServers"][0]["status"] == "connected", status

        await client.query("take long")
        async for m in client.receive_messages():
            if isinstance(m, AssistantMessage) and any(isinstance(b, ToolUseBlock) for b in m.content):
                break
        await client.interrupt()
        r = await turn(client)
        assert r.subtype == "error_during_execution" and r.is_error, r
        try:
            await client.set_permission_mode("bypassPermissions")
            raise AssertionError("everything is let pass")
        except AssertionError:
            raise
        except Exception as e:
            assert "allow-dangerously" in str(e), e
        await client.query("still there?")
        r = await turn(client)
        assert r.result == "still here", r

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async for m in query(prompt="count", options=ClaudeAgentOptions(
            cli_path=coder, output_format={"type": "json_schema", "schema": schema}, extra_args={"script": script2})):
        if isinstance(m, ResultMessage):
            assert m.structured_output == {"n": 3}, m
    # What is allowed by name runs without a question, also where nobody decides; the rest is refused.
    async for m in query(prompt="write", options=ClaudeAgentOptions(
            cli_path=coder, allowed_tools=["Write", "Bash(echo allowed*)"], extra_args={"script": os.path.join(os.path.dirname(script), "allowed")})):
        if isinstance(m, ResultMessage):
            assert m.result == "as allowed" and [d["tool_name"] for d in m.permission_denials] == ["Bash"], m
    assert os.path.exists("allowed.txt") and not os.path.exists("refused.txt")
    print("driven")


asyncio.run(main())
