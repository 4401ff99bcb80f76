// An editor's session: a diff, a permission, a cancel.
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import { Readable, Writable } from "node:stream";

const [coder, script, , modules] = process.argv.slice(2);
const acp = await import(pathToFileURL(path.join(modules, "@agentclientprotocol/sdk/dist/v1/stable/acp.js")).href);
const cwd = process.cwd(), updates = [], asked = [];
fs.writeFileSync("a.txt", "one\nold\nthree\n");
fs.writeFileSync("linked.txt", "what is linked\n");
const agent = spawn(coder, ["acp", "--script", script], { stdio: ["pipe", "pipe", "inherit"] });
const { agent: a, client: c } = acp.methods;
const waiting = [];
await acp.client({ name: "editor" })
  .onRequest(c.session.requestPermission, ({ params }) => {
    asked.push(params);
    const kind = params.toolCall.content.some((x) => x.path?.endsWith("b.txt")) ? "reject_once" : "allow_once";
    return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === kind).optionId } };
  })
  .onNotification(c.session.update, ({ params }) => {
    updates.push(params.update);
    waiting.forEach((w) => w());
  })
  .connectWith(acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (ctx) => {
    const hello = await ctx.request(a.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    assert.equal(hello.protocolVersion, 1);
    const { sessionId, modes } = await ctx.request(a.session.new, { cwd, mcpServers: [] });
    assert.equal(modes.currentModeId, "build");
    const say = (text, ...more) => ctx.request(a.session.prompt, { sessionId, prompt: [{ type: "text", text }, ...more] });
    const r = await say("change it", { type: "resource", resource: { uri: "file:///x", text: "what is linked" } });
    assert.equal(r.stopReason, "end_turn");
    const diff = asked[0].toolCall.content.find((x) => x.type === "diff");
    assert(diff.path === path.join(cwd, "a.txt") && diff.oldText.includes("old") && diff.newText.includes("new"));
    assert.equal(asked[0].options[0].kind, "allow_once");
    assert.equal(fs.readFileSync("a.txt", "utf8"), "one\nnew\nthree\n");
    assert(!fs.existsSync("b.txt"));
    await ctx.request(a.session.setMode, { sessionId, modeId: "auto-edit" });
    await say("plan it");
    assert(updates.some((u) => u.sessionUpdate === "plan") && asked.length === 2);
    const long = say("take long");
    const runs = () => updates.some((u) => u.kind === "execute" && u.status === "in_progress");
    while (!runs()) await new Promise((resolve) => waiting.push(resolve));
    await ctx.notify(a.session.cancel, { sessionId });
    assert.equal((await long).stopReason, "cancelled");
    assert.equal((await say("there?")).stopReason, "end_turn");
    const { sessions } = await ctx.request(a.session.list, { cwd });
    assert(hello.agentCapabilities.sessionCapabilities.delete && sessions.some((s) => s.sessionId === sessionId));
    await ctx.request("session/delete", { sessionId });
    await ctx.request("session/delete", { sessionId });
    assert.deepEqual((await ctx.request(a.session.list, { cwd })).sessions, []);
    await assert.rejects(ctx.request(a.session.prompt, { sessionId: "nope", prompt: [] }));
  });
agent.stdin.end();
const code = await new Promise((resolve) => agent.on("exit", resolve));
assert.equal(code, 0);
console.log("driven");
