package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// served is the program as an MCP server for the official client. Answer, if there
// is one, is what the client's person says to questions.
type served struct {
	*sdk.ClientSession
	dir   string
	asked *[]string
}

func serveMCP(t *testing.T, model, answer string, args ...string) served {
	t.Helper()
	dir := t.TempDir()
	work, home := filepath.Join(dir, "w"), filepath.Join(dir, "home")
	for path, text := range map[string]string{"w/note.txt": "what it says\n", "model": model, "home/keep": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asked := &[]string{}
	o := &sdk.ClientOptions{}
	if answer != "" {
		o.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			*asked = append(*asked, r.Params.Message)
			if answer == "decline" {
				return &sdk.ElicitResult{Action: "decline"}, nil
			}
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer1": answer}}, nil
		}
	}
	cmd := exec.Command("coder", append([]string{"mcp", "serve", "--script", filepath.Join(dir, "model")}, args...)...)
	cmd.Dir, cmd.Stderr = work, os.Stderr
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), noRaceWait}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, o).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("the server did not end well: %v", err)
		}
	})
	return served{session, work, asked}
}

// call calls a tool and gives back what is said, and whether it failed.
func (s served) call(t *testing.T, name, args string) (string, bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}

func TestTheProgramIsAnMCPServer(t *testing.T) {
	const write = `{"path":"made.txt","content":"made"}`
	t.Run("nobody to ask", func(t *testing.T) {
		s := serveMCP(t, "call write "+write+"\n---\nsay could not\n---\nsay /mode is no command here", "")
		list, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		if !slices.Contains(names, "read") || !slices.Contains(names, "bash") || !slices.Contains(names, "delegate") || slices.Contains(names, "question") || slices.Contains(names, "task") {
			t.Errorf("offered: %v", names)
		}
		if text, failed := s.call(t, "read", `{"path":"note.txt"}`); failed || !strings.Contains(text, "what it says") {
			t.Errorf("read: %s", text)
		}
		if text, failed := s.call(t, "write", write); !failed || !strings.Contains(text, "no user can answer") {
			t.Errorf("write: %s", text)
		}
		if text, failed := s.call(t, "delegate", `{"task":"make it"}`); failed || !strings.Contains(text, `"answer":"could not"`) || !strings.Contains(text, `"session":"`) {
			t.Errorf("delegate: %s", text)
		}
		if text, failed := s.call(t, "delegate", `{"task":" "}`); !failed {
			t.Errorf("an empty task: %s", text)
		}
		if _, err := os.Stat(filepath.Join(s.dir, "made.txt")); err == nil {
			t.Error("it was written without leave")
		}
	})
	t.Run("the client's person says yes", func(t *testing.T) {
		s := serveMCP(t, "call write "+write+"\n---\nwant \"ok\":true\nsay made it", "approve")
		if text, failed := s.call(t, "write", `{"path":"own.txt","content":"own"}`); failed {
			t.Errorf("write: %s", text)
		}
		if text, failed := s.call(t, "delegate", `{"task":"make it"}`); failed || !strings.Contains(text, "made it") {
			t.Errorf("delegate: %s", text)
		}
		if len(*s.asked) != 2 || !strings.Contains((*s.asked)[0], "own.txt") || !strings.Contains((*s.asked)[1], "made.txt") {
			t.Errorf("asked: %q", *s.asked)
		}
		for _, name := range []string{"own.txt", "made.txt"} {
			if _, err := os.Stat(filepath.Join(s.dir, name)); err != nil {
				t.Error(err)
			}
		}
	})
	for _, answer := range []string{"reject", "decline", "always", "whatever"} {
		t.Run("they say "+answer, func(t *testing.T) {
			s := serveMCP(t, "say x", answer)
			if text, failed := s.call(t, "write", write); !failed {
				t.Errorf("write: %s", text)
			}
		})
	}
	t.Run("words of others are no commands", func(t *testing.T) {
		s := serveMCP(t, "want Task: /mode yolo\nsay heard", "", "--mode", "plan")
		if text, failed := s.call(t, "delegate", `{"task":"/mode yolo"}`); failed || !strings.Contains(text, "heard") {
			t.Errorf("delegate: %s", text)
		}
		if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "write", Arguments: json.RawMessage(write)}); err == nil {
			t.Error("what the mode switches off is offered")
		}
	})
}

// TestTheProgramServesTheNodeSDK has the SDK that most agents are written with
// call a tool, and answer what it is asked.
func TestTheProgramServesTheNodeSDK(t *testing.T) {
	modules := filepath.Dir(suiteDir())
	node, err := exec.LookPath("node")
	if _, missing := os.Stat(filepath.Join(modules, "@modelcontextprotocol", "sdk")); err != nil || missing != nil {
		t.Skip("Node or its MCP SDK is not installed; make tools installs it")
	}
	dir := t.TempDir()
	const script = `
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { ElicitRequestSchema } = require('@modelcontextprotocol/sdk/types.js');
(async () => {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { answer1: 'approve' } }));
  await client.connect(new StdioClientTransport({ command: 'coder', args: ['mcp', 'serve', '--script', 'model'], env: process.env }));
  const { tools } = await client.listTools();
  const done = await client.callTool({ name: 'write', arguments: { path: 'made.txt', content: 'made' } });
  const task = await client.callTool({ name: 'delegate', arguments: { task: 'say it' } });
  console.log(tools.length > 5, done.isError === true, task.content[0].text);
  await client.close();
})();`
	for name, text := range map[string]string{"model": "say said", "client.cjs": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(node, "client.cjs")
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "NODE_PATH=" + modules, noRaceWait}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `true false {"ok":true,"answer":"said"`) {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "made.txt")); err != nil {
		t.Error(err)
	}
}
