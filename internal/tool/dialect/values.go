package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/lazy"
	"coder/internal/core/message"
)

// stringList returns a list of strings, or one string as a list.
func stringList(raw json.RawMessage) (list []string, err error) {
	var one string
	if json.Unmarshal(raw, &list) != nil {
		if json.Unmarshal(raw, &one) != nil {
			return nil, errors.New("must be text, or a list of texts")
		}
		if json.Unmarshal([]byte(one), &list) != nil {
			list = []string{one}
		}
	}
	return slices.DeleteFunc(list, func(s string) bool { return strings.TrimSpace(s) == "" }), nil
}

// convertEdits converts several edits of one file.
func convertEdits(w *callBuilder, _ string, raw json.RawMessage) error {
	var list []map[string]json.RawMessage
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return errors.New("must be a list of edits, each with old_string and new_string")
	}
	var steps []map[string]json.RawMessage
	for i, item := range list {
		step := make(map[string]json.RawMessage)
		for name, v := range item {
			ours, known := editNames()[fold(name)]
			switch {
			case !known:
				return message.Errorf("entry %d: %q is unknown; each entry has old_string and new_string", i+1, name)
			case ours == "path" && w.args["path"] != nil && w.stringArg("path") != stringValue(v):
				return errors.New("the edits are in several files; call edit for each file")
			case ours == "path":
				w.args["path"] = v
			case ours != "":
				step[ours] = v
			}
		}
		if step["old_string"] == nil || step["new_string"] == nil {
			return message.Errorf("entry %d: old_string and new_string must be given", i+1)
		}
		steps = append(steps, step)
	}
	for name, v := range steps[0] {
		w.args[name] = v
	}
	if len(steps) > 1 {
		w.args["then"] = steps[1:]
	}
	return nil
}

// editNames are the names of the members of an edit in a list.
var editNames = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"oldstring": "old_string", "oldstr": "old_string", "oldtext": "old_string", "search": "old_string",
		"targetcontent": "old_string", "before": "old_string",
		"newstring": "new_string", "newstr": "new_string", "newtext": "new_string", "replace": "new_string",
		"replacementcontent": "new_string", "after": "new_string",
		"replaceall": "replace_all", "allowmultiple": "replace_all", "filepath": "path", "path": "path", "targetfile": "path",
		"explanation": "", "description": "", "instruction": "",
	}
})

func stringValue(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // the tool rejects anything but a string
	return s
}

// convertInsert converts text to insert after line number plus shift.
func convertInsert(shift int) func(w *callBuilder, ours string, raw json.RawMessage) error {
	return func(w *callBuilder, ours string, raw json.RawMessage) error {
		var line int
		var text string
		if json.Unmarshal(raw, &line) != nil {
			return errors.New("must be a number")
		}
		for name, v := range w.foreignArgs {
			if slices.Contains([]string{"newstr", "inserttext", "content", "newstring"}, fold(name)) {
				text = stringValue(v)
			}
		}
		line += shift
		if line < 0 || text == "" {
			return errors.New("the line must be a number from 1, and the text must be given; to add at the end, call edit with the last line")
		}
		lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
		w.args[ours] = fmt.Sprintf("@@ -%d,0 +%d,%d @@\n+%s\n", line, line+1, len(lines), strings.Join(lines, "\n+"))
		return nil
	}
}

var urlPattern = lazy.Regexp(`https?://[^\s<>"'` + "`" + `]+`)

// convertTodos converts a todo list of objects or in Markdown.
func convertTodos(w *callBuilder, ours string, raw json.RawMessage) error {
	var text string
	var list []map[string]any
	isText := json.Unmarshal(raw, &text) == nil
	if isText && json.Unmarshal([]byte(text), &list) == nil {
		isText = false
	} else if isText {
		for line := range strings.Lines(text) {
			if m := checkboxPattern().FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				list = append(list, map[string]any{"content": m[2], "status": map[string]string{"x": "completed", "X": "completed", "-": "in_progress", "~": "in_progress"}[m[1]]})
			}
		}
	} else if json.Unmarshal(raw, &list) != nil {
		return errors.New("must be a list of todos, each with content and status")
	}
	if isText && len(list) == 0 && strings.TrimSpace(text) != "" {
		return errors.New("must be a list of todos, each with content and status, or lines such as - [ ] look")
	}
	out := make([]map[string]string, 0, len(list))
	for _, item := range list {
		if s, _ := item["status"].(string); strings.HasPrefix(strings.ToLower(s), "cancel") {
			w.notes = append(w.notes, "cancelled items were removed from the list")
			continue
		}
		todo := make(map[string]string)
		for key, v := range item {
			s, ok := v.(string)
			if !ok {
				continue
			}
			switch fold(key) {
			case "content", "description", "step", "title", "task", "text":
				if todo["content"] == "" || fold(key) == "content" || fold(key) == "title" && item["content"] == nil {
					todo["content"] = s
				}
			case "status", "state":
				todo["status"] = todoStatus(s)
			case "id":
				todo["id"] = s
			case "priority":
				todo["priority"] = s
			}
		}
		if todo["content"] == "" {
			return errors.New("every entry needs content: the task")
		}
		if todo["status"] == "" {
			delete(todo, "status")
		}
		out = append(out, todo)
	}
	w.args[ours] = out
	return nil
}

var checkboxPattern = lazy.Regexp(`^(?:[-*]\s+)?\[([ xX~-])\]\s+(.+)$`)

func todoStatus(s string) string {
	switch fold(strings.ReplaceAll(s, "-", "")) {
	case "inprogress", "active", "doing", "started":
		return "in_progress"
	case "completed", "complete", "done", "finished":
		return "completed"
	case "pending", "todo", "notstarted", "open", "blocked":
		return "pending"
	}
	return s
}

// isShell reports whether a word is a shell's name.
func isShell(word string) bool {
	switch word[strings.LastIndexByte(word, '/')+1:] {
	case "bash", "sh", "zsh", "dash":
		return true
	}
	return false
}

// shellQuote quotes a word for a shell.
func shellQuote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@,+%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
