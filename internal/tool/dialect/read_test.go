package dialect_test

import (
	"encoding/json"
	"testing"

	"coder/internal/tool/dialect"
)

func TestArgumentsBecomeOurs(t *testing.T) {
	for _, c := range []struct{ tool, args, want string }{
		{"grep_search", `{"query":"f","exclude_pattern":["*.md","a, b"],"include_pattern":"*.go"}`, `{"include":"*.go,!*.md,!a,!b","pattern":"f"}`},
		{"grep_search", `{"pattern":"f","exclude_pattern":"!x"}`, `{"include":"!x","pattern":"f"}`},
		{"read_file", `{"filePath":"a","startLineNumberBaseZero":2,"endLineNumberBaseZero":4}`, `{"limit":3,"offset":3,"path":"a"}`},
		{"insert_content", `{"path":"a","line":2,"content":"x\ny\n"}`, `{"patch":"@@ -1,0 +2,2 @@\n+x\n+y\n","path":"a"}`},
		{"str_replace_editor", `{"command":"insert","path":"a","insert_line":2,"new_str":"x"}`, `{"patch":"@@ -2,0 +3,1 @@\n+x\n","path":"a"}`},
		{"str_replace_editor", `{"command":"str_replace","path":"a","old_str":"x"}`, `{"new_string":"","old_string":"x","path":"a"}`},
		{"MultiEdit", `{"file_path":"a","edits":[{"old_string":"x","new_string":"y"},{"oldText":"z","newText":"","replace_all":true}]}`,
			`{"new_string":"y","old_string":"x","path":"a","then":[{"new_string":"","old_string":"z","replace_all":true}]}`},
		{"replace", `{"file_path":"a","old_string":"x","new_string":"y","expected_replacements":3}`, `{"expected_replacements":3,"new_string":"y","old_string":"x","path":"a"}`},
		{"codebase_search", `{"query":"q","target_directories":["d"]}`, `{"path":"d","query":"q"}`},
		{"read_text_file", `{"path":"a","tail":5}`, `{"offset":-5,"path":"a"}`},
		// what only other rows for the same tool of ours speak of
		{"execute_command", `{"command":"ls","security_risk":"LOW","dir_path":"d"}`, `{"command":"cd d \u0026\u0026 ls"}`},
		{"view", `{"file_path":"a","task_progress":"x"}`, `{"path":"a"}`},
	} {
		got, ok, err := dialect.Convert(c.tool, json.RawMessage(c.args))
		if !ok || err != nil || string(got.Args) != c.want {
			t.Errorf("%s %s\n\tis %s, %v\n\twant %s", c.tool, c.args, got.Args, err, c.want)
		}
	}
}

// What means different things in different calls is never taken from another row.
func TestContestedArgumentsAreNotBorrowed(t *testing.T) {
	for tool, args := range map[string]string{
		"developer__shell": `{"command":"ls","timeout":5}`,              // seconds or milliseconds
		"replace_in_file":  `{"target_file":"a","diff":"x"}`,            // which another row deletes
		"execute_command":  `{"command":"ls","path":"a"}`,               // which another row makes
		"view":             `{"file_path":"a","paths":["b"],"top":"1"}`, // which nobody knows
	} {
		if c, ok, err := dialect.Convert(tool, json.RawMessage(args)); ok {
			t.Errorf("%s %s is %s, %v", tool, args, c.Args, err)
		}
	}
}

func TestNamesAreTakenBare(t *testing.T) {
	for name, want := range map[string]string{
		"functions.read": "read", "default_api:read_file": "read_file", "tools/grep": "grep", "developer__shell": "shell",
		"ReadTool": "Read", "bash_tool": "bash", "read": "", "tool": "", "mcp__files__read": "", "Tool": "",
	} {
		if got := dialect.BareName(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
