package dialect

import (
	"encoding/json"
	"path/filepath"
	"sync"

	"coder/internal/core/jsonx"
)

// externalTool is a tool as known to external programs written for another agent: hooks, rules and drivers.
type externalTool struct {
	name string
	args map[string]string // ours → theirs; others keep their names
}

// pathArgs are the arguments that external programs expect as full paths.
var pathArgs = map[string]bool{"file_path": true, "path": true, "notebook_path": true}

var externalTools = sync.OnceValue(func() map[string]externalTool {
	return map[string]externalTool{
		"bash":  {"Bash", map[string]string{"background": "run_in_background"}},
		"read":  {"Read", map[string]string{"path": "file_path"}},
		"write": {"Write", map[string]string{"path": "file_path"}},
		"edit":  {"Edit", map[string]string{"path": "file_path"}},
		"notebook_edit": {"NotebookEdit", map[string]string{"path": "notebook_path", "cell": "cell_id",
			"source": "new_source", "type": "cell_type", "mode": "edit_mode"}},
		"glob":              {"Glob", nil},
		"grep":              {"Grep", map[string]string{"include": "glob"}},
		"list":              {"LS", nil},
		"fetch":             {"WebFetch", nil},
		"todowrite":         {"TodoWrite", nil},
		"task":              {"Task", map[string]string{"objective": "prompt", "agent": "subagent_type"}},
		"skill":             {"Skill", map[string]string{"name": "skill", "arguments": "args"}},
		"question":          {"AskUserQuestion", nil},
		"exit_plan_mode":    {"ExitPlanMode", nil},
		"structured_output": {"StructuredOutput", nil},
	}
})

// ToExternal returns a call of one of coder's tools in the form of programs written for another agent;
// unknown names stay the same. Paths are full, from root.
func ToExternal(tool string, args json.RawMessage, root string) (name string, theirs json.RawMessage) {
	o, known := externalTools()[tool]
	var given map[string]json.RawMessage
	if !known || json.Unmarshal(args, &given) != nil {
		return tool, args
	}
	out := make(map[string]json.RawMessage, len(given))
	for name, value := range given {
		if theirs, ok := o.args[name]; ok {
			name = theirs
		}
		var path string
		if pathArgs[name] && json.Unmarshal(value, &path) == nil && path != "" && !filepath.IsAbs(path) {
			value = jsonx.MustMarshal(filepath.Join(root, path))
		}
		out[name] = value
	}
	return o.name, jsonx.MustMarshal(out)
}

// FromExternal returns coder's tools for a name in programs written for another agent; nil if there is none,
// or if the name is coder's. All file-editing tools are one tool to those programs.
func FromExternal(theirs string) (ours []string) {
	switch theirs {
	case "Edit", "MultiEdit":
		return []string{"edit", "patch", "notebook_edit"}
	}
	for name, o := range externalTools() {
		if o.name == theirs {
			return []string{name}
		}
	}
	return nil
}
