# An editor's session: a diff, a permission, a plan, modes, a cancel, and the same
# session opened again.
import asyncio, os, sys
import acp
from acp.schema import AllowedOutcome, ClientCapabilities, RequestPermissionResponse, ResourceContentBlock, TextContentBlock

coder, script = sys.argv[1:3]
cwd = os.getcwd()


class Editor:
    def __init__(self):
        self.updates, self.asked = [], []

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.append((tool_call, options))
        wanted = "reject_once" if any(c.path.endswith("b.txt") for c in tool_call.content if c.type == "diff") else "allow_once"
        chosen = next(o for o in options if o.kind == wanted)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)

    def kinds(self):
        return [u.session_update for u in self.updates]

    def said(self, kind="agent_message_chunk"):
        return "".join(u.content.text for u in self.updates if u.session_update == kind)


async def main():
    with open("a.txt", "w") as f:
        f.write("one\nold\nthree\n")
    with open("linked.txt", "w") as f:
        f.write("what is linked\n")
    editor = Editor()
    async with acp.spawn_agent_process(editor, coder, "acp", "--script", script, env=dict(os.environ), cwd=cwd) as (conn, process):
        hello = await conn.initialize(protocol_version=99, client_capabilities=ClientCapabilities())
        assert hello.protocol_version == 1 and hello.agent_capabilities.load_session, hello
        session = await conn.new_session(cwd=cwd, mcp_servers=[])
        assert session.modes.current_mode_id == "build" and "yolo" not in [m.id for m in session.modes.available_modes], session
        linked = ResourceContentBlock(type="resource_link", uri="file://" + cwd + "/linked.txt", name="linked.txt")
        r = await conn.prompt(session.session_id, [TextContentBlock(type="text", text="change it, see "), linked])
        assert r.stop_reason == "end_turn", r
        assert editor.said("agent_thought_chunk") == "let me see" and editor.said() == "Changing it.done", editor.said()
        commands = next(u for u in editor.updates if u.session_update == "available_commands_update")
        assert any(c.name == "compact" for c in commands.available_commands)
        call, options = editor.asked[0]
        assert options[0].kind == "allow_once" and call.kind == "edit", options
        diff = next(c for c in call.content if c.type == "diff")
        assert diff.path == cwd + "/a.txt" and "old" in diff.old_text and "new" in diff.new_text, diff
        assert call.locations[0].path == cwd + "/a.txt", call
        done = [u for u in editor.updates if u.session_update == "tool_call_update" and u.status == "completed"]
        assert any(c.type == "diff" for u in done for c in u.content), done
        failed = [u for u in editor.updates if u.session_update == "tool_call_update" and u.status == "failed"]
        assert len(failed) == 1 and not os.path.exists("b.txt") and open("a.txt").read() == "one\nnew\nthree\n"

        await conn.set_session_mode(session.session_id, "auto-edit")
        try:
            await conn.set_session_mode(session.session_id, "sideways")
            raise AssertionError("an unknown mode was taken")
        except acp.RequestError:
            pass
        r = await conn.prompt(session.session_id, [TextContentBlock(type="text", text="plan it")])
        assert r.stop_reason == "end_turn" and len(editor.asked) == 2 and os.path.exists("c.txt")
        plan = [u for u in editor.updates if u.session_update == "plan"][-1]
        assert [e.status for e in plan.entries] == ["in_progress", "pending"], plan
        assert "current_mode_update" in editor.kinds()

        running = asyncio.create_task(conn.prompt(session.session_id, [TextContentBlock(type="text", text="take long")]))
        while not any(u.session_update == "tool_call_update" and u.status == "in_progress" and u.kind == "execute" for u in editor.updates):
            await asyncio.sleep(0.01)
        await conn.cancel(session.session_id)
        assert (await running).stop_reason == "cancelled"
        r = await conn.prompt(session.session_id, [TextContentBlock(type="text", text="/status")])
        assert r.stop_reason == "end_turn" and session.session_id in editor.said()
        assert (await conn.prompt(session.session_id, [TextContentBlock(type="text", text="there?")])).stop_reason == "end_turn"
        assert editor.said().endswith("still here")
    again = Editor()
    async with acp.spawn_agent_process(again, coder, "acp", "--script", script, env=dict(os.environ), cwd=cwd) as (conn, process):
        await conn.initialize(protocol_version=1)
        listed = await conn.list_sessions(cwd=cwd)
        assert [s.session_id for s in listed.sessions] == [session.session_id] and listed.sessions[0].cwd == cwd, listed
        await conn.resume_session(cwd=cwd, session_id=session.session_id)
        assert again.said() == "" and again.said("user_message_chunk") == "", again.updates
        await conn.close_session(session_id=session.session_id)
        await conn.load_session(cwd=cwd, session_id=session.session_id)
        assert "change it" in again.said("user_message_chunk") and "still here" in again.said(), again.updates
        assert any(u.session_update == "tool_call" for u in again.updates)
        try:
            await conn.load_session(cwd=cwd, session_id="nope")
            raise AssertionError("an unknown session was opened")
        except acp.RequestError as e:
            assert e.code == -32002, e
    print("driven")


asyncio.run(main())
