package dialect

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"

	"coder/internal/core/lazy"
	"coder/internal/core/message"
)

// callBuilder is one of coder's calls under construction.
type callBuilder struct {
	foreignArgs  map[string]json.RawMessage
	args         map[string]any
	dir          string // where the command runs
	lastLine     int    // the last wanted line, or 0
	excludeGlobs string // globs of excluded files
	literal      bool   // the pattern is literal
	notes        []string
}

// convertArg converts one foreign argument.
func (w *callBuilder) convertArg(a arg, raw json.RawMessage) error {
	if a.conversion == "" {
		if before, twice := w.args[a.name]; twice {
			if b, _ := json.Marshal(before); string(b) != string(raw) {
				return message.Errorf("%s is given twice", a.name)
			}
		}
		w.args[a.name] = raw
		return nil
	}
	convert, ok := conversions()[a.conversion]
	if !ok {
		return message.Errorf("no conversion %q", a.conversion)
	}
	return convert(w, a.name, raw)
}

// stringArg returns one of coder's arguments as a string, or "".
func (w *callBuilder) stringArg(ours string) (s string) {
	switch v := w.args[ours].(type) {
	case string:
		s = v
	case json.RawMessage:
		_ = json.Unmarshal(v, &s) // the tool rejects anything else
	}
	return s
}

// convertTyped returns a conversion for values of one type. If a value has another
// type, or put returns false, the error says what it must be.
func convertTyped[T any](must string, put func(w *callBuilder, ours string, v T) bool) func(*callBuilder, string,
	json.RawMessage) error {
	return func(w *callBuilder, ours string, raw json.RawMessage) error {
		var v T
		if json.Unmarshal(raw, &v) != nil || !put(w, ours, v) {
			return errors.New(must)
		}
		return nil
	}
}

// conversions are the conversions of a foreign value into one of coder's.
var conversions = sync.OnceValue(func() map[string]func(w *callBuilder, ours string, raw json.RawMessage) error {
	return map[string]func(w *callBuilder, ours string, raw json.RawMessage) error{
		// A command as a list of words, or the line itself.
		"argv": func(w *callBuilder, ours string, raw json.RawMessage) error {
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
				words[i] = shellQuote(words[i])
			}
			w.args[ours] = strings.Join(words, " ")
			return nil
		},
		"cd": func(w *callBuilder, _ string, raw json.RawMessage) error { return json.Unmarshal(raw, &w.dir) },
		"seconds": convertTyped("must be a number of seconds", func(w *callBuilder, ours string, s float64) bool {
			w.args[ours] = int(s * 1000)
			return true
		}),
		// The largest of several numbers.
		"most": convertTyped("must be a number", func(w *callBuilder, ours string, n int) bool {
			before, _ := w.args[ours].(int)
			w.args[ours] = max(before, n)
			return true
		}),
		// Texts that belong together.
		"add": convertTyped("must be text", func(w *callBuilder, ours string, s string) bool {
			if before, _ := w.args[ours].(string); before != "" && before != s {
				s = before + "\n\n" + s
			}
			w.args[ours] = s
			return true
		}),
		// A list of exactly one item, or the fields of that item.
		"one": func(w *callBuilder, ours string, raw json.RawMessage) error {
			var list []json.RawMessage
			if json.Unmarshal(raw, &list) != nil {
				list = []json.RawMessage{raw}
			}
			if len(list) != 1 {
				return message.Errorf("has %d entries; call once for each; one reply may hold several calls", len(list))
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
		"next": convertTyped("must be a number", func(w *callBuilder, ours string, n int) bool { // lines counted from 0
			w.args[ours] = n + 1
			w.notes = append(w.notes, "lines are counted from 1 here")
			return true
		}),
		"until": convertTyped("must be a number", func(w *callBuilder, _ string, n int) bool {
			w.lastLine = n
			return true
		}),
		"untilnext": convertTyped("must be a number", func(w *callBuilder, _ string, n int) bool { // a line counted from 0
			w.lastLine = n + 1
			return true
		}),
		"range": convertTyped("must be the first and the last line", func(w *callBuilder, ours string, lines []int) bool {
			if len(lines) != 2 {
				return false
			}
			w.args[ours] = lines[0]
			if lines[1] > 0 {
				w.args["limit"] = max(lines[1]-max(lines[0], 1)+1, 1)
			}
			return true
		}),
		"not": convertTyped("must be true or false", func(w *callBuilder, ours string, yes bool) bool {
			w.args[ours] = !yes
			return true
		}),
		"literal": func(w *callBuilder, _ string, raw json.RawMessage) error { return json.Unmarshal(raw, &w.literal) },
		"regexp": func(w *callBuilder, _ string, raw json.RawMessage) error {
			var yes bool
			err := json.Unmarshal(raw, &yes)
			w.literal = !yes
			return err
		},
		"names": convertTyped("must be true or false", func(w *callBuilder, ours string, yes bool) bool {
			if yes {
				w.args[ours] = "files"
			}
			return true
		}),
		"mode": convertTyped("must be text", func(w *callBuilder, ours string, mode string) bool {
			if mode == "files_with_matches" {
				mode = "files"
			}
			w.args[ours] = mode
			return true
		}),
		"deep": func(w *callBuilder, ours string, raw json.RawMessage) error {
			if strings.Trim(string(raw), `"`) == "true" {
				w.args[ours] = 5
			}
			return nil
		},
		"like": convertTyped("must be a part of a path", func(w *callBuilder, ours string, part string) bool {
			if w.args[ours] = part; !strings.ContainsAny(part, "*?[{") {
				w.args[ours] = "**/*" + part + "*"
			}
			return part != ""
		}),
		"url": func(w *callBuilder, ours string, raw json.RawMessage) error { // the only address in a text
			var text string
			if err := json.Unmarshal(raw, &text); err != nil {
				return errors.New("must be text")
			}
			found := urlPattern().FindAllString(text, -1)
			if len(found) != 1 {
				return message.Errorf("has %d addresses; call fetch with the url", len(found))
			}
			w.args[ours] = strings.TrimRight(found[0], ".,;:!?)")
			return nil
		},
		"delete": convertTyped("must be a path", func(w *callBuilder, ours string, path string) bool {
			w.args[ours] = "*** Begin Patch\n*** Delete File: " + path + "\n*** End Patch"
			return path != "" && !strings.ContainsAny(path, "\r\n")
		}),
		"mkdir": convertTyped("must be a path", func(w *callBuilder, ours string, path string) bool {
			w.args[ours] = "mkdir -p -- " + shellQuote(path)
			return path != ""
		}),
		"download": func(w *callBuilder, ours string, raw json.RawMessage) error {
			var url, to string
			if json.Unmarshal(raw, &url) != nil || json.Unmarshal(w.foreignArgs["file_path"], &to) != nil || to == "" {
				return errors.New("url and file_path must be given")
			}
			w.args[ours] = "curl -fsSL -o " + shellQuote(to) + " -- " + shellQuote(url)
			return nil
		},
		"labels": func(w *callBuilder, ours string, raw json.RawMessage) error { // answers to choose from
			var list []json.RawMessage
			var text string
			if json.Unmarshal(raw, &text) == nil {
				if json.Unmarshal([]byte(text), &list) != nil {
					for _, m := range regexp.MustCompile(`(?s)<suggest[^>]*>(.*?)</suggest>`).FindAllStringSubmatch(text, -1) {
						label, _ := json.Marshal(strings.TrimSpace(m[1])) // a string always marshals
						list = append(list, label)
					}
				}
				if len(list) == 0 {
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
		"todos":  convertTodos,
		"edits":  convertEdits,
		"after":  convertInsert(0),
		"before": convertInsert(-1),
		"used":   func(*callBuilder, string, json.RawMessage) error { return nil }, // used by another conversion
		// An unsupported argument, accepted only if it has no effect.
		"none": func(_ *callBuilder, _ string, raw json.RawMessage) error {
			switch strings.Trim(string(raw), `" `) {
			case "false", "False", "0", "", "[]", "{}":
				return nil
			}
			return message.Errorf("%s is not supported here; omit it", raw)
		},
		"literally": func(_ *callBuilder, _ string, raw json.RawMessage) error {
			if strings.Trim(string(raw), `"`) == "true" {
				return errors.New("text is replaced literally; give the exact text, or use sed with bash")
			}
			return nil
		},
		"multiline": func(w *callBuilder, _ string, raw json.RawMessage) error {
			if strings.Trim(string(raw), `"`) == "true" &&
				multilinePattern().MatchString(strings.ReplaceAll(string(w.foreignArgs["pattern"]), `\\`, `\`)) {
				return errors.New("search works line by line here; search for one of the lines, with context for the others")
			}
			return nil
		},
		"globs": func(w *callBuilder, ours string, raw json.RawMessage) error { // one glob, or a list
			list, err := stringList(raw)
			if len(list) > 0 {
				w.args[ours] = strings.Join(list, ",")
			}
			return err
		},
		"except": func(w *callBuilder, _ string, raw json.RawMessage) error {
			list, err := stringList(raw)
			for _, glob := range list {
				for part := range strings.SplitSeq(glob, ",") {
					w.excludeGlobs += ",!" + strings.TrimPrefix(strings.TrimSpace(part), "!")
				}
			}
			w.excludeGlobs = strings.TrimPrefix(w.excludeGlobs, ",")
			return err
		},
		"only": func(w *callBuilder, ours string, raw json.RawMessage) error { // the only folder of a list
			list, err := stringList(raw)
			switch len(list) {
			case 0:
			case 1:
				w.args[ours] = list[0]
			default:
				w.notes = append(w.notes, "all of the workspace is searched, not only these folders")
			}
			return err
		},
		"file": func(w *callBuilder, ours string, raw json.RawMessage) error { // the only file of a list, no glob
			list, err := stringList(raw)
			switch {
			case err != nil || len(list) == 0:
				return err
			case len(list) > 1:
				return message.Errorf("has %d entries; call once for each; one reply may hold several calls", len(list))
			case strings.ContainsAny(list[0], "*?{"):
				return errors.New("is a file pattern; find the files with glob and read each; one reply may hold several calls")
			}
			w.args[ours] = list[0]
			return nil
		},
		"definitions": func(w *callBuilder, ours string, raw json.RawMessage) error { // definitions in a file or folder
			w.args[ours] = raw
			w.args["pattern"] = `^\s*((export|default|public|private|protected|internal|static|abstract|final|async|pub(\([a-z]+\))?|unsafe|open|override)\s+)*(func|fn|def|class|interface|type|struct|enum|trait|impl|mod|module|namespace|function|object|record|protocol|extension)\s+[\w(<]`
			return nil
		},
		"gone": func(w *callBuilder, ours string, raw json.RawMessage) error { // a text to delete
			w.args[ours], w.args["new_string"] = raw, ""
			return nil
		},
		"tail": convertTyped("must be a number of lines", func(w *callBuilder, ours string, n int) bool { // at the end
			w.args[ours] = -n
			return n >= 1
		}),
		"move": func(w *callBuilder, ours string, raw json.RawMessage) error {
			var from, to string
			if json.Unmarshal(raw, &from) != nil || json.Unmarshal(w.foreignArgs["destination"], &to) != nil || from == "" ||
				to == "" || strings.ContainsAny(from+to, "\r\n") {
				return errors.New("source and destination must be paths")
			}
			w.args[ours] = "*** Begin Patch\n*** Update File: " + from + "\n*** Move to: " + to + "\n*** End Patch"
			return nil
		},
	}
})

// multilinePattern matches patterns that can match more than one line where a dot also matches line ends.
var multilinePattern = lazy.Regexp(`\\[nrsSWDR]|\[\^|\(\?[a-zA-Z]*s|(?:^|[^\\])\.`)
