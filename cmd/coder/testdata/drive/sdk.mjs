// A session driven by the SDK: permissions, changed arguments, hooks, a server in
// this process, an interrupt, another model, another mode.
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [coder, script, counts, modules] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(createRequire(path.join(modules, "x.js")).resolve(name)).href);
const { query, tool, createSdkMcpServer } = await load("@anthropic-ai/claude-agent-sdk");
const { z } = await load("zod");

const asked = [], hooked = [], models = [], inits = [];
let say, more = () => new Promise((resolve) => (say = resolve));
async function* prompts() {
  for (let text = "write them"; text; text = await more()) {
    yield { type: "user", message: { role: "user", content: text }, parent_tool_use_id: null, session_id: "" };
  }
}
const q = query({
  prompt: prompts(),
  options: {
    pathToClaudeCodeExecutable: coder, extraArgs: { script, "unheard-of": null }, allowedTools: ["mcp__calc__add"], maxTurns: 20,
    systemPrompt: "You count.",
    mcpServers: { calc: createSdkMcpServer({ name: "calc", tools: [tool("add", "adds two numbers", { a: z.number(), b: z.number() },
      async ({ a, b }) => ({ content: [{ type: "text", text: `the sum is ${a + b}` }] }))] }) },
    canUseTool: async (name, input, { suggestions }) => {
      const file = path.basename(input.file_path ?? "");
      asked.push(file);
      if (file === "no.txt") return { behavior: "deny", message: "not that one" };
      if (file === "old.txt") return { behavior: "allow", updatedInput: { ...input, file_path: input.file_path.replace("old", "new") } };
      if (file === "always.txt") return { behavior: "allow", updatedInput: input, updatedPermissions: suggestions.slice(0, 1) };
      return { behavior: "allow", updatedInput: input };
    },
    hooks: {
      PreToolUse: [{ matcher: "Bash", hooks: [async (input) => {
        hooked.push(input.tool_name);
        return input.tool_input.command.includes("forbidden")
          ? { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: "the hook says no" } } : {};
      }] }],
    },
  },
});
const turn = async (each = () => {}) => {
  for (;;) {
    const { value: m, done } = await q.next();
    if (done) throw new Error("it ended");
    if (m.type === "system" && m.subtype === "init") inits.push(m);
    if (m.type === "assistant") models.push(m.message.model), await each(m);
    if (m.type === "result") return m;
  }
};
let r = await turn();
assert.equal(r.result, "all written");
assert.deepEqual(r.permission_denials.map((d) => d.tool_name), ["Write", "Bash"]);
assert.deepEqual([...asked].sort(), ["always.txt", "no.txt", "old.txt"]);
assert(hooked.includes("Bash") && fs.existsSync("new.txt") && !fs.existsSync("old.txt") && !fs.existsSync("no.txt"));
assert((await q.supportedCommands()).some((c) => c.name === "compact"));

await q.setModel("another");
await q.setPermissionMode("acceptEdits");
say("write one more");
r = await turn();
assert.equal(r.result, "no question needed");
assert.equal(models.at(-1), "another");
assert.equal(inits.at(-1).permissionMode, "acceptEdits");
assert(!asked.includes("more.txt") && fs.existsSync("more.txt"));

say("take long");
r = await turn(async (m) => { if (m.message.content.some((b) => b.type === "tool_use")) await q.interrupt(); });
assert.equal(r.subtype, "error_during_execution");
await assert.rejects(q.setPermissionMode("bypassPermissions"), /allow-dangerously/);
say("still there?");
r = await turn();
assert.equal(r.result, "still here");
say(undefined);
for await (const _ of q) {}

const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
for await (const m of query({ prompt: "count", options: { pathToClaudeCodeExecutable: coder, extraArgs: { script: counts }, outputFormat: { type: "json_schema", schema } } })) {
  if (m.type === "result") assert.deepEqual(m.structured_output, { n: 3 });
}
// What is allowed by name runs without a question, also where nobody decides; the rest is refused.
const allowed = path.join(path.dirname(script), "allowed");
for await (const m of query({ prompt: "write", options: { pathToClaudeCodeExecutable: coder, extraArgs: { script: allowed }, allowedTools: ["Write", "Bash(echo allowed*)"] } })) {
  if (m.type === "result") assert.deepEqual([m.result, m.permission_denials.map((d) => d.tool_name)], ["as allowed", ["Bash"]]);
}
assert(fs.existsSync("allowed.txt") && !fs.existsSync("refused.txt"));

// Servers that come and go during the session.
{
  let say, more = () => new Promise((resolve) => (say = resolve));
  async function* prompts() {
    for (let text = await more(); text; text = await more()) {
      yield { type: "user", message: { role: "user", content: text }, parent_tool_use_id: null, session_id: "" };
    }
  }
  const q = query({ prompt: prompts(), options: { pathToClaudeCodeExecutable: coder, extraArgs: { script: path.join(path.dirname(script), "added") }, allowedTools: ["mcp__later__add"] } });
  await q.initializationResult();
  const later = createSdkMcpServer({ name: "later", tools: [tool("add", "adds two numbers", { a: z.number(), b: z.number() },
    async ({ a, b }) => ({ content: [{ type: "text", text: `the sum is ${a + b}` }] }))] });
  assert.deepEqual((await q.setMcpServers({ later })).added, ["later"]);
  say("add");
  for (;;) {
    const { value: m, done } = await q.next();
    assert(!done);
    if (m.type === "result") { assert.equal(m.result, "added"); break; }
  }
  assert.deepEqual((await q.reloadPlugins()).plugins, []);
  say(undefined);
  for await (const _ of q) {}
}
console.log("driven");
