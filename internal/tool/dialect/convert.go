package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// writing is a call of ours in the making.
type writing struct {
	given  map[string]json.RawMessage
	args   map[string]any
	dir    string // where a command is to run
	until  int    // the last line wanted, 0 if none is named
	quoted bool   // the pattern is meant to the letter
	notes  []string
}

// put enters one argument of theirs.
func (w *writing) put(a arg, raw json.RawMessage) error {
	if a.by == "" {
		if before, twice := w.args[a.ours]; twice {
			if b, _ := json.Marshal(before); string(b) != string(raw) {
				return fmt.Errorf("%s is given twice", a.ours)
			}
		}
		w.args[a.ours] = raw
		return nil
	}
	convert, ok := conversions[a.by]
	if !ok {
		return fmt.Errorf("no conversion %q", a.by)
	}
	return convert(w, a.ours, raw)
}

// finish enters what depends on several arguments.
func (w *writing) finish() {
	if w.dir != "" && w.dir != "." {
		command, _ := w.args["command"].(string)
		if raw, ok := w.args["command"].(json.RawMessage); ok {
			_ = json.Unmarshal(raw, &command) // one that is no string is refused by the tool
		}
		w.args["command"] = inFolder(w.dir, command)
		w.notes = append(w.notes, "there is no argument for the folder; the command begins with cd")
	}
	if w.until > 0 {
		first := 1
		if raw, ok := w.args["offset"].(json.RawMessage); ok && json.Unmarshal(raw, &first) == nil {
			first = max(first, 1)
		}
		w.args["limit"] = max(w.until-first+1, 1)
	}
	if w.quoted {
		var pattern string
		if raw, ok := w.args["pattern"].(json.RawMessage); ok && json.Unmarshal(raw, &pattern) == nil {
			w.args["pattern"] = regexp.QuoteMeta(pattern)
		}
	}
}

// inFolder is a command line that runs command in dir, and not at all if it
// cannot get there.
func inFolder(dir, command string) string {
	if strings.ContainsAny(command, "\n;&|<>#(){}`") {
		return "cd " + quote(dir) + " && {\n" + command + "\n}"
	}
	return "cd " + quote(dir) + " && " + command
}

// conversions are the ways in which a value of theirs becomes one of ours.
var conversions = map[string]func(w *writing, ours string, raw json.RawMessage) error{
	// A command as a list of words, or the line itself.
	"argv": func(w *writing, ours string, raw json.RawMessage) error {
		var line string
		if json.Unmarshal(raw, &line) == nil {
			w.args[ours] = line
			return nil
		}
		var words []string
		if json.Unmarshal(raw, &words) != nil || len(words) == 0 {
			return errors.New("must be a command line, or a list of its words")
		}
		if n := len(words); n == 3 && isShell(words[0]) && (words[1] == "-c" || words[1] == "-lc") {
			w.args[ours] = words[2]
			return nil
		}
		for i := range words {
			words[i] = quote(words[i])
		}
		w.args[ours] = strings.Join(words, " ")
		return nil
	},
	"cd": func(w *writing, _ string, raw json.RawMessage) error { return json.Unmarshal(raw, &w.dir) },
	"seconds": func(w *writing, ours string, raw json.RawMessage) error {
		var s float64
		if err := json.Unmarshal(raw, &s); err != nil {
			return errors.New("must be a number of seconds")
		}
		w.args[ours] = int(s * 1000)
		return nil
	},
	// The largest of several numbers.
	"most": func(w *writing, ours string, raw json.RawMessage) error {
		var n int
		if err := json.Unmarshal(raw, &n); err != nil {
			return errors.New("must be a number")
		}
		before, _ := w.args[ours].(int)
		w.args[ours] = max(before, n)
		return nil
	},
	// Texts that belong together.
	"add": func(w *writing, ours string, raw json.RawMessage) error {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return errors.New("must be text")
		}
		before, _ := w.args[ours].(string)
		switch {
		case before == "" || before == s:
			w.args[ours] = s
		default:
			w.args[ours] = before + "\n\n" + s
		}
		return nil
	},
	// A list of exactly one thing, or the fields of it.
	"one": func(w *writing, ours string, raw json.RawMessage) error {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			list = []json.RawMessage{raw}
		}
		if len(list) != 1 {
			return fmt.Errorf("has %d entries; call once for each, several calls may stand in one reply", len(list))
		}
		if ours != "" {
			w.args[ours] = list[0]
			return nil
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(list[0], &fields) != nil {
			return errors.New("must be a list of objects")
		}
		for name, v := range fields {
			w.args[name] = v
		}
		return nil
	},
	"next": func(w *writing, ours string, raw json.RawMessage) error { // lines counted from 0
		var n int
		if err := json.Unmarshal(raw, &n); err != nil {
			return errors.New("must be a number")
		}
		w.args[ours] = n + 1
		w.notes = append(w.notes, "lines are counted from 1 here")
		return nil
	},
	"until": func(w *writing, _ string, raw json.RawMessage) error {
		if err := json.Unmarshal(raw, &w.until); err != nil {
			return errors.New("must be a number")
		}
		return nil
	},
	"range": func(w *writing, ours string, raw json.RawMessage) error { // [first, last]
		var lines []int
		if json.Unmarshal(raw, &lines) != nil || len(lines) != 2 {
			return errors.New("must be the first and the last line")
		}
		w.args[ours] = lines[0]
		if lines[1] > 0 {
			w.args["limit"] = max(lines[1]-max(lines[0], 1)+1, 1)
		}
		return nil
	},
	"not": func(w *writing, ours string, raw json.RawMessage) error {
		var yes bool
		if err := json.Unmarshal(raw, &yes); err != nil {
			return errors.New("must be true or false")
		}
		w.args[ours] = !yes
		return nil
	},
	"literal": func(w *writing, _ string, raw json.RawMessage) error { return json.Unmarshal(raw, &w.quoted) },
	"regexp": func(w *writing, _ string, raw json.RawMessage) error {
		var yes bool
		err := json.Unmarshal(raw, &yes)
		w.quoted = !yes
		return err
	},
	"several": func(w *writing, ours string, raw json.RawMessage) error { // how many are to be replaced
		var n int
		if err := json.Unmarshal(raw, &n); err != nil {
			return errors.New("must be a number")
		}
		if n > 1 {
			w.args[ours] = true
		}
		return nil
	},
	"names": func(w *writing, ours string, raw json.RawMessage) error {
		var yes bool
		if err := json.Unmarshal(raw, &yes); err != nil {
			return errors.New("must be true or false")
		}
		if yes {
			w.args[ours] = "files"
		}
		return nil
	},
	"mode": func(w *writing, ours string, raw json.RawMessage) error {
		var mode string
		if err := json.Unmarshal(raw, &mode); err != nil {
			return errors.New("must be text")
		}
		if mode == "files_with_matches" {
			mode = "files"
		}
		w.args[ours] = mode
		return nil
	},
	"deep": func(w *writing, ours string, raw json.RawMessage) error {
		var yes bool
		if s := strings.Trim(string(raw), `"`); s == "true" {
			yes = true
		}
		if yes {
			w.args[ours] = 5
		}
		return nil
	},
	"like": func(w *writing, ours string, raw json.RawMessage) error { // a part of a path
		var part string
		if err := json.Unmarshal(raw, &part); err != nil || part == "" {
			return errors.New("must be a part of a path")
		}
		if strings.ContainsAny(part, "*?[{") {
			w.args[ours] = part
		} else {
			w.args[ours] = "**/*" + part + "*"
		}
		return nil
	},
	"url": func(w *writing, ours string, raw json.RawMessage) error { // the one address in a text
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return errors.New("must be text")
		}
		found := address.FindAllString(text, -1)
		if len(found) != 1 {
			return fmt.Errorf("holds %d addresses; call fetch with the url", len(found))
		}
		w.args[ours] = strings.TrimRight(found[0], ".,;:!?)")
		return nil
	},
	"delete": func(w *writing, ours string, raw json.RawMessage) error {
		var path string
		if err := json.Unmarshal(raw, &path); err != nil || path == "" || strings.ContainsAny(path, "\r\n") {
			return errors.New("must be a path")
		}
		w.args[ours] = "*** Begin Patch\n*** Delete File: " + path + "\n*** End Patch"
		return nil
	},
	"mkdir": func(w *writing, ours string, raw json.RawMessage) error {
		var path string
		if err := json.Unmarshal(raw, &path); err != nil || path == "" {
			return errors.New("must be a path")
		}
		w.args[ours] = "mkdir -p -- " + quote(path)
		return nil
	},
	"download": func(w *writing, ours string, raw json.RawMessage) error {
		var url, to string
		if json.Unmarshal(raw, &url) != nil || json.Unmarshal(w.given["file_path"], &to) != nil || to == "" {
			return errors.New("url and file_path must be given")
		}
		w.args[ours] = "curl -fsSL -o " + quote(to) + " -- " + quote(url)
		return nil
	},
	"labels": func(w *writing, ours string, raw json.RawMessage) error { // answers to choose from
		var list []json.RawMessage
		var text string
		if json.Unmarshal(raw, &text) == nil {
			if json.Unmarshal([]byte(text), &list) != nil {
				return errors.New("must be a list of answers")
			}
		} else if json.Unmarshal(raw, &list) != nil {
			return errors.New("must be a list of answers")
		}
		var out []map[string]string
		for _, item := range list {
			var label string
			if json.Unmarshal(item, &label) != nil {
				var object struct{ Label, Text string }
				if json.Unmarshal(item, &object) != nil || object.Label+object.Text == "" {
					return errors.New("must be a list of answers")
				}
				label = object.Label + object.Text
			}
			out = append(out, map[string]string{"label": label})
		}
		w.args[ours] = out
		return nil
	},
	"todos": todos,
}

var address = regexp.MustCompile(`https?://[^\s<>"'` + "`" + `]+`)

// todos reads a list of things to do, of objects or in Markdown.
func todos(w *writing, ours string, raw json.RawMessage) error {
	var text string
	var list []map[string]any
	if json.Unmarshal(raw, &text) == nil {
		for line := range strings.Lines(text) {
			if m := checkbox.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				list = append(list, map[string]any{"content": m[2], "status": map[string]string{"x": "completed", "X": "completed", "-": "in_progress", "~": "in_progress"}[m[1]]})
			}
		}
	} else if json.Unmarshal(raw, &list) != nil {
		return errors.New("must be a list of things to do, each with content and status")
	}
	out := make([]map[string]string, 0, len(list))
	for _, item := range list {
		if s, _ := item["status"].(string); strings.HasPrefix(strings.ToLower(s), "cancel") {
			w.notes = append(w.notes, "what is cancelled was left out of the list")
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
				todo["status"] = status(s)
			case "id":
				todo["id"] = s
			case "priority":
				todo["priority"] = s
			}
		}
		if todo["content"] == "" {
			return errors.New("every entry needs content: what is to be done")
		}
		if todo["status"] == "" {
			delete(todo, "status")
		}
		out = append(out, todo)
	}
	w.args[ours] = out
	return nil
}

var checkbox = regexp.MustCompile(`^(?:[-*]\s+)?\[([ xX~-])\]\s+(.+)$`)

func status(s string) string {
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

// isShell reports whether a word starts a shell.
func isShell(word string) bool {
	switch word[strings.LastIndexByte(word, '/')+1:] {
	case "bash", "sh", "zsh", "dash":
		return true
	}
	return false
}

// quote writes a word so that a shell reads it as it is.
func quote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@,+%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
