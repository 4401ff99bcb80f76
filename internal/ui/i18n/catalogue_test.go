package i18n_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"coder/internal/ui/i18n"
)

// catalogue reads the Chinese catalogue as it is written: an entry that stands
// twice is an error here.
func catalogue(t *testing.T) (keys []string, table map[string]string) {
	t.Helper()
	raw, err := os.ReadFile("zh-CN.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	table = make(map[string]string)
	for d.More() {
		var entry [2]string
		for i := range entry {
			tok, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			entry[i], _ = tok.(string)
		}
		if _, twice := table[entry[0]]; twice {
			t.Errorf("%q stands twice", entry[0])
		}
		keys, table[entry[0]] = append(keys, entry[0]), entry[1]
	}
	return keys, table
}

// verbatim are texts that are the same in every language, and why.
var verbatim = map[string]string{
	"Cancelled by ESC": "fixed wording",
	"Stopped model stream and tool execution; todo state remains unchanged unless a tool had already completed.": "fixed wording",
	"step limit reached":        "fixed wording",
	"read":                      "the name of a tool",
	"fetch":                     "the name of a tool",
	"todowrite":                 "the name of a tool",
	"%d ms":                     "a unit",
	"%s s":                      "a unit",
	"%d min %d s":               "units",
	"%s (%s)":                   "no words",
	"leave":                     "ends the loop, never shown",
	"left":                      "a cause for cancelling, never shown",
	"silence":                   "a cause for cancelling, told in other words",
	"nothing but signs of life": "a cause for cancelling, told in other words",
	"time is up":                "a cause for cancelling, told in other words",
	"complete, though the connection is still open": "a cause for cancelling, never shown",
	"enough":                 "a cause for cancelling, never shown",
	"locked":                 "told as a session in use",
	"session moved on":       "a conflict inside the program, told as a session in use",
	"patched":                "translated with the rest of its sentence",
	"would patch":            "translated with the rest of its sentence",
	"; did you mean \"%s\"?": "translated with the rest of its sentence",
	"the person has left":    "a cause for cancelling, never shown",
	"restored":               "translated with what follows it", "removed": "translated with what follows it", "lost": "translated with what follows it",
	"%s staged":        "translated with the number before it",
	"0.1.0-dev":        "the version",
	"the turn is over": "a cause for cancelling, never shown",
}

// elsewhere are entries that no one literal of the source makes, and who does.
var elsewhere = map[string]string{
	"rule: %s": "policy.Reason", "risk: %s": "policy.Reason", "mode: %s": "policy.Reason",
	"policy: %s": "policy.Reason", "auto-approve: %s": "policy.Reason",
	"unknown key %q": "config", "unknown key %q; did you mean %q?": "config",
	"a number from %s to %s": "config", "a whole number from %s to %s": "config",
	"process %d on %s since %s": "jsonl", "process %d since %s": "jsonl", "process %d on %s": "jsonl",
	"%s running": "bash", "%d files staged": "git", "1 file staged": "git",
	"mode: %s, permissions: %s, checks: never": "orchestrator", "mode: %s, permissions: %s, checks: automatic": "orchestrator",
	"%s ended, exit %d": "bash", "%s stopped, exit %d": "bash", "%s not started": "bash",
	"created, +%d -%d": "files", "updated, +%d -%d": "files", "edited, +%d -%d": "files",
	"patched %d files, +%d -%d": "files", "would patch %d files, +%d -%d": "files",
	"%s changed on disk since the change was planned; re-read it":                                                    "files",
	"%s changed on disk since it was read; re-read it":                                                               "files",
	"this repository configures filters (%s), which this tool does not run; stage such files with a command instead": "git",
	"%d files, +%d -%d": "git", "1 file, +%d -%d": "git", "1 file": "git",
	"%d changes": "git", "1 change": "git", "%d commits": "git", "1 commit": "git",
	"1 line": "codenav", "%d characters": "codenav", "1 character": "codenav",
	"%d errors": "codenav", "1 error": "codenav", "%d warnings": "codenav", "1 warning": "codenav",
	"%d jobs": "bash", "1 job": "bash", "%s stopped": "bash", "agent: %s": "policy.Reason", "address already in use": osError, "cannot assign requested address": osError,
	"exit status %d": osError, "read the file again": "patch", "a boolean": "tool", "an array": "tool", "an integer": "tool", "deny (nobody)": "event", "the limit resets at %s": "orchestrator", "continue without it": "skill", "check CODER_API_KEY, your vendor's variable or provider.api_key": "cli", "coder config show prints which one is used": "cli", "exec: %q: executable file not found in $PATH": osError, "server misbehaving": osError, "todo list": "plan", "background jobs": "bash",
	"%d remarks": "codenav", "1 remark": "codenav", "%d definitions": "codenav", "1 definition": "codenav",
	"%d references": "codenav", "1 reference": "codenav", "%d new problems": "codenav", "1 new problem": "codenav",
	"%d in progress": "plan", "%d completed": "plan",
	"--auto-approve allows calls that only need approval": "cli",
	"could not be written: %s (%s)":                       "orchestrator",
	"lost: %s (%s)":                                       "orchestrator", "restored to someone else's later version: %s": "orchestrator",
	"not undone outside this folder: %s": "orchestrator", "automatic check not run: %s": "verify",
	"nothing of this turn remains: %s": "slash", "not enforced: %s": "app",
	"restored: %s": "orchestrator", "removed: %s": "orchestrator", "lost: %s": "orchestrator", "undone: %s": "orchestrator", "redone: %s": "orchestrator",
	"would be undone: %s": "orchestrator", "would be redone: %s": "orchestrator",
	"nothing was undone: %s": "orchestrator", "nothing was redone: %s": "orchestrator",
	"nothing would be undone: %s": "orchestrator", "nothing would be redone: %s": "orchestrator",
	"%d entries": "files", "1 entry": "files",
	"patched 1 file, +%d -%d": "files", "would patch 1 file, +%d -%d": "files",
	"updated, +%d -%d, %d/%d hunks": "files", "patched %d files, +%d -%d, %d/%d hunks": "files", "patched 1 file, +%d -%d, %d/%d hunks": "files",
	"%d files": "search", "%d matches in %d files": "search", "%d matches in 1 file": "search", "1 match in 1 file": "search",
	"%d results in %d files": "codesearch", "%d results in 1 file": "codesearch", "1 result in 1 file": "codesearch",
	"write down how a recurring job is done": "skills",
	"answers questions about the code":       "subagent", "it is read-only": "subagent", "does a self-contained piece of work": "subagent",

	"process %d (%s)":                "jsonl",
	"process %d (%s) on %s":          "jsonl",
	"process %d (%s) since %s":       "jsonl",
	"process %d (%s) on %s since %s": "jsonl",
	"allow (user)":                   "event",
	"allow (policy)":                 "event",
	"allow (hook)":                   "event",
	"deny (user)":                    "event",
	"deny (policy)":                  "event",
	"deny (hook)":                    "event",
	"cancelled (recovery)":           "event",
	"allow (verify)":                 "event",
	"asking the model: Draft an AGENTS.md for this project": "slash",
	"allow (%s)":                      "event",
	"deny (%s)":                       "event",
	"unknown (recovery)":              "event",
	"#%d approve":                     "slash",
	"#%d reject":                      "slash",
	"#%d always":                      "slash",
	"#%d session":                     "slash",
	"#%d below":                       "slash",
	"#%d some":                        "slash",
	"#%d %s: exit %d":                 "slash",
	"invalid literal: %s":             "hujson",
	"parsing value: unexpected EOF":   "hujson",
	"parsing string: unexpected EOF":  "hujson",
	"parsing comment: unexpected EOF": "hujson",
	"parsing object after name: unexpected EOF":                      "hujson",
	"parsing object after value: unexpected EOF":                     "hujson",
	"parsing array after value: unexpected EOF":                      "hujson",
	"invalid UTF-8 in comment":                                       "hujson",
	"invalid character %s at start of value":                         "hujson",
	"invalid character %s at start of object name":                   "hujson",
	"invalid character %s after object name":                         "hujson",
	"invalid character %s after top-level value":                     "hujson",
	"invalid character %s in line comment":                           "hujson",
	"invalid character %s after array value (expecting ',' or ']')":  "hujson",
	"invalid character %s after object value (expecting ',' or '}')": "hujson",

	"no such file or directory": osError, "file does not exist": osError, "permission denied": osError, "operation not permitted": osError,
	"no space left on device": osError, "read-only file system": osError, "disk quota exceeded": osError, "is a directory": osError,
	"not a directory": osError, "directory not empty": osError, "file exists": osError, "file already exists": osError,
	"file name too long": osError, "too many open files": osError, "too many levels of symbolic links": osError,
	"cannot allocate memory": osError, "connection refused": osError, "connection reset by peer": osError,
	"network is unreachable": osError, "no route to host": osError, "no such host": osError, "i/o timeout": osError,
	"invalid character %s looking for beginning of %s": osError, "object key string": osError, "error parsing regexp: %s": osError,
	"missing closing ): %s": osError, "missing closing ]: %s": osError, "missing argument to repetition operator: %s": osError, "invalid escape sequence: %s": osError, "unexpected ): %s": osError, "invalid character class range: %s": osError, "invalid nested repetition operator: %s": osError, "invalid repeat count: %s": osError, "invalid named capture: %s": osError, "invalid or unsupported Perl syntax: %s": osError,
	"%s: unknown argument %q": "tool", "%s: unknown argument %q; it takes %s": "tool",
	"unexpected EOF": osError, "context deadline exceeded": osError, "context canceled": osError,
	"executable file not found in $PATH": osError, "input/output error": osError, "invalid argument": osError, "broken pipe": osError,
}

const osError = "the system or the standard library"

func TestEveryTextThatReachesPeopleIsInTheCatalogue(t *testing.T) {
	keys, table := catalogue(t)
	said := i18n.For(i18n.Chinese)
	for _, s := range readSource(t).speech() {
		if _, whole := table[s.format]; whole {
			continue
		}
		for line := range strings.Lines(s.format) {
			line = strings.TrimSpace(line)
			_, known := table[line]
			_, fixed := verbatim[line]
			switch {
			case known, fixed, !hasWords(line):
			case strings.Contains(line, "%") && !i18n.Sure(line) && !s.own:
				// The program knows it by its parts only.
			case !strings.Contains(line, "%") && said.TranslateText(line) != line && !englishRun.MatchString(said.TranslateText(line)):
				// The catalogue has a wider format for it, which leaves nothing as it was.
			default:
				t.Errorf("%s: %q has no translation; add it to zh-CN.json %s", s.where, line, placeOf(line, keys))
			}
		}
	}
}

// placeOf returns the place of a new entry among the sorted keys.
func placeOf(key string, keys []string) string {
	at, _ := slices.BinarySearch(keys, key)
	if at == 0 {
		return "as the first entry"
	}
	return fmt.Sprintf("below %q", keys[at-1])
}

var englishRun = regexp.MustCompile(`[a-z]{2,} [a-z]{2,} [a-z]{2,}`)

func TestTranslationsTakeTheSameArguments(t *testing.T) {
	keys, table := catalogue(t)
	for _, key := range keys {
		value := table[key]
		want := arguments(key)
		for i, verb := range arguments(value) { // %v says that a %s may be a sentence
			if i < len(want) && strings.HasSuffix(verb, "v") && want[i] == verb[:1]+"s" {
				want[i] = verb
			}
		}
		if !slices.Equal(want, arguments(value)) {
			t.Errorf("%q becomes %q, with other verbs", key, value)
		}
		if value == "" || hasWords(key) && !strings.ContainsFunc(value, isChinese) && value != key && !strings.ContainsRune(value, '、') {
			t.Errorf("%q is not translated: %q", key, value)
		}
		if strings.Count(key, "\n") != strings.Count(value, "\n") {
			t.Errorf("%q has other lines: %q", key, value)
		}
	}
	for i := range keys[1:] {
		if keys[i+1] < keys[i] {
			t.Errorf("%q must not stand below %q; sort the entries by the bytes of their keys", keys[i+1], keys[i])
		}
	}
}

// TestOneWordIsUsedForOneThing so that people need not guess whether two are meant.
func TestOneWordIsUsedForOneThing(t *testing.T) {
	others := map[string]string{"您": "你", "智能体": "代理", "服务商": "提供方", "模型服务": "提供方", "词元": "token", "tokens，": "个 token，", "机队": "集群", "回合": "轮", "文件夹": "目录"}
	counted := regexp.MustCompile(`%[ds] token`)
	halfWidth := regexp.MustCompile(`\p{Han}[,;]|[,;] ?\p{Han}`)
	keys, table := catalogue(t)
	for _, key := range keys {
		value := table[key]
		for word, usual := range others {
			if strings.Contains(value, word) {
				t.Errorf("%q says %s where others say %s", value, word, usual)
			}
		}
		if counted.MatchString(value) {
			t.Errorf("%q counts tokens otherwise than as 个 token", value)
		}
		if at := halfWidth.FindString(value); at != "" && !strings.Contains(value, "y, 请") && !strings.HasPrefix(value, "1, 请") { // which is what to type
			t.Errorf("%q has a sign of half width in %q", value, at)
		}
	}
}

func isChinese(r rune) bool {
	return unicode.Is(unicode.Han, r) || strings.ContainsRune("：、，（）；", r)
}

// arguments are the arguments a format shows, each with its verb, in order of
// the arguments.
func arguments(format string) (all []string) {
	next := 0
	for _, v := range verbs.FindAllString(format, -1) {
		if v == "%%" {
			continue
		}
		if _, rest, ok := strings.Cut(v, "["); ok {
			next = int(rest[0] - '1')
		}
		all = append(all, string(rune('1'+next))+v[len(v)-1:])
		next++
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestNoEntryIsStale(t *testing.T) {
	keys, table := catalogue(t)
	m := readSource(t)
	made := m.literals()
	for _, s := range m.speech() {
		made[s.format] = true
	}
	for _, key := range keys {
		if _, ok := elsewhere[key]; !ok && !made[key] && !made[key+"\n"] {
			t.Errorf("nothing in the program says %q", key)
		}
	}
	for key := range elsewhere {
		if _, ok := table[key]; !ok {
			t.Errorf("%q is listed as made elsewhere, and has no translation", key)
		}
	}
}

// plainly are words that faces write without translating them, and why.
var plainly = map[string]string{
	"x":                                    "measures a look and is not shown",
	"\x1b[0m":                              "a code for the terminal",
	"      coder respond %s --option %s\n": "what to type",
	"coder ":                               "the program's name",
	"coder: %s":                            "the program's name before a sentence",
	":files":                               "for the script of a shell",
	":dirs":                                "for the script of a shell",
	"coder %s":                             "the program's name and version",
	"coder %s\n":                           "the program's name and version",
	"[APPROVAL] %s":                        "fixed wording",
	"[THINKING]":                           "fixed wording",
	"[ANSWER]":                             "fixed wording",
	"[COMMAND]":                            "fixed wording",
	"[Question]":                           "fixed wording",
	"[Question %d/%d]":                     "fixed wording",
	`\[u%04X]`:                             "a sign of the manual page",
	"%s\n[interrupted]":                    "marks a broken answer on stdout for programs too",
}

// writers are the functions through which faces write, and which argument of
// theirs is text. The rest of the arguments are values.
var writers = map[string]int{
	"fmt.Fprint": 1, "fmt.Fprintln": 1, "fmt.Fprintf": 1, "fmt.Print": 0, "fmt.Println": 0, "fmt.Printf": 0, "io.WriteString": 1,
	"WriteString": 0, "Print": 0, "Insert": 0, "printText": 1, "writeMasked": 1, "write": 1, "Paint": 1,
}

func TestFacesSayNothingPastTheCatalogue(t *testing.T) {
	m := readSource(t)
	for _, f := range m.files {
		if !isFace(f.dir) {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := nameOf(c.Fun)
			at, writes := writers[name]
			if !writes {
				at, writes = writers[name[strings.LastIndexByte(name, '.')+1:]]
			}
			if writes && at < len(c.Args) && nameOf(c.Args[at]) != "ignored" { // a file for git
				m.checkWritten(t, f, c.Args[at], strings.HasSuffix(name, "f"))
			}
			return true
		})
	}
}

// checkWritten complains of words that are written as they stand.
func (m *module) checkWritten(t *testing.T, f sourceFile, e ast.Expr, isFormat bool) {
	text := m.pieces(f, e, isFormat, 8)
	if _, ok := plainly[text]; ok || !hasWords(text) {
		return
	}
	t.Errorf("%s: %q is written as it stands; use T or Said", m.where(f, e), text)
}

// contract are the strings that other programs look for on the screen, in any language.
var contract = []string{
	"step limit reached", "exit=", "(truncated)", "stdout:", "stderr:", "(no output)", "[output truncated]",
	"...[output truncated for display]", "...[error output truncated for display]", "command mode denied: bash disabled by active agent ",
	"matches dangerous command policy", "policy requires approval", "best-effort", "[ANSWER]", "[tool]", "[Question ", " (Recommended)",
	"Cancelled by ESC", "[Request interrupted by user", "Implement the following plan:", "path outside workspace",
}

func TestTheContractHoldsInEveryLanguage(t *testing.T) {
	keys, table := catalogue(t)
	for _, key := range keys {
		for _, fixed := range contract {
			if strings.Contains(key, fixed) && !strings.Contains(table[key], fixed) {
				t.Errorf("the translation of %q lost %q", key, fixed)
			}
		}
	}
}
