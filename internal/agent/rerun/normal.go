package rerun

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/lazy"
	"coder/internal/core/uip"
)

// Normalisations are what may differ between a session and its rerun, by name.
var Normalisations = []string{"time", "durations", "paths", "ids"}

const (
	weekday = `(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*`
	month   = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*`
)

// The expressions for what may differ.
var (
	times = lazy.Regexp(`\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?Z| ?[+-]\d\d:?\d\d)?)?` +
		`|\b(?:` + weekday + `,? )?` + month + ` {1,2}\d{1,2},? (?:\d\d:\d\d(?::\d\d)?| ?\d{4})(?: [AP]M)?(?: [A-Z]{3,5})?(?: [+-]\d{4})?(?: \d{4})?\b` +
		`|\b(?:` + weekday + `,? )?\d{1,2} ` + month + ` \d{4}(?: \d\d:\d\d(?::\d\d)?)?` +
		`|\b\d\d:\d\d:\d\d(?:\.\d+)?\b` +
		`|\b1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?\b`)
	durations = lazy.Regexp(`\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|secs?|seconds?|minutes?)\b|\b\d+m\d+(?:\.\d+)?s\b|duration_ms: \d+|\(cached\)`)
	listed    = lazy.Regexp(`(?m)^( *)([bcdlps-][rwxsStT-]{9}[.+@]?) +\d+ +(\S+) +(\S+) +(\d+) (.*)$`)
	total     = lazy.Regexp(`(?m)^( *total) \S+(\n *[bcdlps-][rwxsStT-]{9})`)
	tempNames = lazy.Regexp(`/tmp/[\w.+-]*(?:\d{4,}|tmp\.\w{6,})[\w.+-]*`)
	ids       = lazy.Regexp(`\b(task|ui|call|mention|bang|undo|job|hook)_[a-z2-7]{12}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{40}\b|\b[0-9a-f]{7,12}\b|\b[Pp][Ii][Dd]:? ?\d+\b|\bCODER_COMMAND=[\w.-]+`)
)

// normal is text without what may differ.
func normal(text string) string {
	text = times().ReplaceAllString(text, "<time>")
	text = durations().ReplaceAllString(text, "<duration>")
	text = total().ReplaceAllString(text, "$1$2")
	text = listed().ReplaceAllStringFunc(text, folders)
	text = tempNames().ReplaceAllString(text, "<temporary>")
	return ids().ReplaceAllStringFunc(text, func(id string) string {
		if len(id) <= 12 && !strings.ContainsAny(id, "_=") && (!strings.ContainsAny(id, "0123456789") || !strings.ContainsAny(id, "abcdefPp")) {
			return id // a number, or a word
		}
		return "<id>"
	})
}

// folders is a line of a long listing without how many links there are, how large a
// folder is, and what the one above is like: that is the copy's, not the session's.
func folders(line string) string {
	p := listed().FindStringSubmatch(line)
	switch {
	case strings.HasSuffix(p[6], " .."):
		return p[1] + ".."
	case strings.HasPrefix(p[2], "d"):
		p[5] = "<size>"
	}
	return p[1] + strings.Join(p[2:], " ")
}

// alike reports whether two texts are the same but for what may differ. An id may
// happen to look like a number: then it stands for one that does not.
func alike(a, b string) bool {
	a, b = normal(a), normal(b)
	if a == b || alikeButCut(a, b) {
		return true
	}
	x, y := digits().FindAllString(a, -1), digits().FindAllString(b, -1)
	if len(x) != len(y) || digits().ReplaceAllString(a, "<id>") != digits().ReplaceAllString(b, "<id>") {
		return false
	}
	for i := range x {
		if x[i] != y[i] && x[i] != "<id>" && y[i] != "<id>" {
			return false
		}
	}
	return true
}

// alikeButCut reports whether two texts of which parts were left out are the same
// but for where exactly: how much is left out depends on how long the words for
// durations and paths are.
func alikeButCut(a, b string) bool {
	x, y := gaps().Split(a, -1), gaps().Split(b, -1)
	if len(x) == 1 || len(x) != len(y) {
		return false
	}
	for i := range x {
		if !alikeWithin(strings.Split(x[i], "\n"), strings.Split(y[i], "\n"), i > 0, i < len(x)-1) {
			return false
		}
	}
	return true
}

var gaps = lazy.Regexp(`\[\d+ bytes are not shown here`)

// nearGap is how many lines on either side of a gap may be on one side only.
const nearGap = 16

// alikeWithin reports whether two runs of lines are the same but for a few at the
// beginning, after a gap, and at the end, before one.
func alikeWithin(a, b []string, after, before bool) bool {
	first, last := 0, 0
	if after {
		first = nearGap
	}
	if before {
		last = nearGap
	}
	for skip := -first; skip <= first; skip++ {
		x, y := a[min(max(skip, 0), len(a)):], b[min(max(-skip, 0), len(b)):]
		n := min(len(x), len(y))
		if max(len(x), len(y))-n > last {
			continue
		}
		from, to := 0, n
		if after {
			from = min(2, n) // the rest of the line with the gap, and one that was cut
		}
		if before {
			to = max(n-1, from)
		}
		if slices.Equal(x[from:to], y[from:to]) {
			return true
		}
	}
	return false
}

var digits = lazy.Regexp(`<id>|\b\d{7,12}\b`)

// swap replaces a path where it stands as such.
func swap(text, from, to string) string {
	if from == "" || from == "/" || !strings.Contains(text, from) {
		return text
	}
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, from)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		if after != "" && strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", rune(after[0])) {
			b.WriteString(from) // another path that begins alike
		} else {
			b.WriteString(to)
		}
		text = after
	}
}

// told is an event in the words in which it is compared, and shown where it
// differs. Files names the content of a file.
func told(e event.Event, files func(event.FileState) string, expand func(event.FileChange) []event.FileChange) string {
	var b strings.Builder
	say := func(name string, value any) {
		if text := words(value); text != "" {
			if strings.Contains(text, "\n") {
				text = "\n  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
			}
			fmt.Fprintf(&b, "%s: %s\n", name, strings.TrimRight(text, " "))
		}
	}
	switch e := e.(type) {
	case event.TaskCreated:
		say("task", e.Intent)
		say("agent", e.AgentID)
	case event.TaskStarted:
		say("started", e.AgentID)
	case event.TaskCompleted:
		say("task", "completed")
		say("summary", e.Summary)
	case event.TaskFailed:
		say("task", "failed")
		say("reason", e.Reason)
	case event.TaskCanceled:
		say("task", "canceled")
		say("reason", e.Reason)
	case event.InteractionRequested:
		tellQuestion(say, e.Request)
	case event.InteractionResponded:
		tellAnswer(say, e.Response)
	case event.ToolCallRequested:
		say("call", e.Tool)
		if e.Tool != "undo" && e.Tool != "redo" { // these name records by their numbers
			say("input", e.Input)
		}
		say("effects", event.JoinEffects(e.Effects, "\n"))
		say("verdict", string(e.Verdict)+" by "+e.DecidedBy)
		for _, s := range e.Before {
			say("before", s.Path+" "+files(s))
		}
	case event.ToolCallCompleted:
		say("result of", e.Tool)
		say("failed", fmt.Sprint(e.IsError))
		say("output", untimed(e.Tool, e.Output))
		tellChanges(say, e, files, expand)
	case event.MessageAdded:
		tellMessage(say, e.Message)
		say("reminders", e.Reminders)
		if e.Interrupted {
			say("interrupted", "true")
		}
	case event.TodosChanged:
		for _, t := range e.Todos {
			say("todo", string(t.Status)+" "+t.Content)
		}
	case event.ModeChanged:
		say("mode", e.Mode+" "+e.Preset)
	case event.ContextReplaced:
		say("context", string(e.Reason))
		say("keeps", fmt.Sprint(e.Keep))
		for _, m := range e.Messages {
			tellMessage(say, m)
		}
	case event.ContextRestored:
		say("context", "restored")
	case event.ContextRewound:
		say("rewound", fmt.Sprintf("%d messages, %d turns, undone %v", e.Messages, e.Turns, e.Undo))
	case event.LocalAdded:
		say("command", e.Input)
		say("failed", fmt.Sprint(e.Failed))
	default:
		name, _ := event.Name(e)
		say("record", name)
	}
	return b.String()
}

func tellMessage(say func(string, any), m chat.Message) {
	say(string(m.Role), m.Text())
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Reasoning:
			say("thinking", p.Text)
		case chat.Image:
			say("picture", fmt.Sprintf("%s, %d bytes", p.MediaType, len(p.Data)))
		case chat.ToolCall:
			say("calls "+p.Name, cmp.Or(p.Broken, string(p.Args)))
		case chat.ToolResult:
			say("told of "+p.Name, untimed(p.Name, json.RawMessage(p.Text)))
		}
	}
}

func tellQuestion(say func(string, any), q uip.Request) {
	say("asked", q.Display.Title)
	var options []string
	left := q.Author == event.ActorRecovery // which is best, and whether there is more to see, is told by files of a call that was cut off
	for _, o := range q.Options {
		if !left || o.ID != supervisor.Look {
			options = append(options, o.ID)
		}
	}
	if left {
		slices.Sort(options)
	}
	say("options", strings.Join(options, " "))
	for _, part := range q.Parts {
		tellQuestion(say, part)
	}
}

func tellAnswer(say func(string, any), a uip.Response) {
	say("answered", strings.TrimSpace(a.Option+" "+a.Input))
	say("comment", a.Comment)
	for _, part := range a.Parts {
		tellAnswer(say, part)
	}
}

// tellChanges tells what a call did to files, and what of them the model saw.
func tellChanges(say func(string, any), e event.ToolCallCompleted, files func(event.FileState) string, expand func(event.FileChange) []event.FileChange) {
	var lines []string
	for _, c := range e.Changes {
		for _, one := range expand(c) {
			if one.Before.Hash == "dir" && one.After.Hash == "dir" {
				continue
			}
			name := cmp.Or(one.After.Path, one.Before.Path)
			lines = append(lines, fmt.Sprintf("%s %s -> %s", name, files(one.Before), files(one.After)))
		}
	}
	slices.Sort(lines)
	say("files", strings.Join(slices.Compact(lines), "\n"))
	for _, s := range e.Saw {
		say("saw", s.Path+" "+files(s))
	}
}

// untimed is a result without what depends on when it was: files that a pattern finds
// come the newest first, and a commit has another name, which may look like a number.
func untimed(tool string, output json.RawMessage) any {
	var found map[string]any
	if tool != "glob" && tool != "git_commit" || json.Unmarshal(output, &found) != nil {
		return output
	}
	if matches, ok := found["matches"].([]any); ok {
		slices.SortFunc(matches, func(a, b any) int { return strings.Compare(words(a), words(b)) })
	}
	if _, ok := found["commit"].(string); ok {
		found["commit"] = "<id>"
	}
	return found
}

// words is a value as it is told: of JSON each key on a line of its own, without
// what only measures or may come late.
func words(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.RawMessage:
		var decoded any
		if json.Unmarshal(v, &decoded) != nil {
			return string(v)
		}
		return words(decoded)
	case map[string]any:
		var b strings.Builder
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(unsteady, k) {
				text := words(v[k])
				if strings.Contains(text, "\n") {
					text = "\n  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
				}
				fmt.Fprintf(&b, "%s: %s\n", k, text)
			}
		}
		return b.String()
	case []any:
		var lines []string
		for _, one := range v {
			lines = append(lines, strings.TrimRight(words(one), "\n"))
		}
		return strings.Join(lines, "\n")
	}
	return fmt.Sprint(value)
}

// unsteady are keys of results whose values say how long something took, or what
// language servers had to say by then.
var unsteady = []string{"duration_ms", "pid", "diagnostics", "new_diagnostics", "sandbox"}
