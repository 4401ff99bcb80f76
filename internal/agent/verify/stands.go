package verify

import (
	"path"
	"slices"
	"strings"
)

// Stands reports whether a check that was run stands for another: it is that one, but
// perhaps for how much it tells, how it is started, where from and how fast it is.
func (c Check) Stands(check string) bool {
	if strings.TrimSpace(c.Command) == check {
		return true
	}
	ran := steps(unwrapped(c.Command))
	return !slices.ContainsFunc(parts(check), func(part string) bool {
		same := essence(c.root, part)
		return same == "" || !slices.ContainsFunc(ran, func(step string) bool { return essence(c.root, step) == same })
	})
}

// Fails reports whether the check that was run is another, in the sense of Stands, and
// failed on what is there now.
func (c Check) Fails(check string) bool {
	if c.Command == "" || c.ExitCode == 0 || c.Untold != "" || c.Edits+c.Others > 0 {
		return false
	}
	same := essence(c.root, check)
	return strings.TrimSpace(c.Command) == check || same != "" && essence(c.root, unwrapped(c.Command)) == same
}

// unwrapped is a line without the brackets around all of it, and with && behind the folders
// that it goes to first: where a check stands for another there is such a folder.
func unwrapped(line string) string {
	line = strings.TrimSpace(line)
	if inner, ok := strings.CutPrefix(line, "("); ok && strings.HasSuffix(inner, ")") && !strings.ContainsAny(inner[:len(inner)-1], "()") {
		line = strings.TrimSpace(strings.TrimSuffix(inner, ")"))
	}
	if !strings.HasPrefix(line, "cd ") {
		return line
	}
	i := strings.IndexAny(line, "&|;\n")
	if i < 0 || line[i] != ';' && line[i] != '\n' {
		return line
	}
	if _, ok := fields(line[:i]); !ok {
		return line
	}
	return line[:i] + " && " + unwrapped(line[i+1:])
}

// steps are the commands that have all passed where a line has, each with the changes of
// folder before it: those joined by &&, from the last ; on. What stands behind signs of which
// more would have to be known is left out.
func steps(line string) (all []string) {
	line = strings.TrimSpace(line)
	if i := strings.LastIndexAny(line, ";\n"); i >= 0 && !strings.Contains(line[:i], "cd ") && !strings.ContainsAny(line[:i], "\"'\\`$()") {
		line = line[i+1:]
	}
	all = append(all, line)
	folders := ""
	for step := range strings.SplitSeq(line, "&&") {
		step = strings.TrimSpace(step)
		if strings.HasPrefix(step, "cd ") {
			folders += step + " && "
			continue
		}
		if all = append(all, folders+step); strings.ContainsAny(strings.TrimSuffix(step, "2>&1"), "\"'\\`$()|<>&;\n") {
			break
		}
	}
	return all
}

// elsewhereBy are the options with which programs work in another folder, or by a file there.
var elsewhereBy = map[string][]string{
	"go": {"-C"}, "npm": {"--prefix", "-C"}, "pnpm": {"-C", "--dir"}, "yarn": {"--cwd"},
	"cargo": {"--manifest-path"}, "mvn": {"-f", "--file"}, "gradle": {"-p", "--project-dir"},
}

// goesTo is the folder that a program goes to by itself, "" if it stays, and the command
// without that.
func goesTo(words []string) (to string, rest []string) {
	for i, w := range words {
		name, value, valued := strings.Cut(w, "=")
		switch {
		case w == "--":
			return "", words
		case !slices.Contains(elsewhereBy[words[0]], name):
			continue
		case !valued && i+1 == len(words):
			return "", words
		case !valued:
			rest, value = slices.Concat(words[:i], words[i+2:]), words[i+1]
		default:
			rest = slices.Concat(words[:i], words[i+1:])
		}
		if file := path.Base(value); file == "Cargo.toml" || file == "pom.xml" {
			value = path.Dir(value)
		}
		return value, rest
	}
	return "", words
}

// settings are variables that change nothing of what is checked.
var settings = strings.Fields("CGO_ENABLED CI FORCE_COLOR GOCACHE GOTOOLCHAIN NODE_ENV NO_COLOR PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONUNBUFFERED RUST_BACKTRACE")

// tellers are the programs that a check is started with, and the options of each that
// leave out nothing of what is checked; those that end with "=" take a value.
var tellers = []struct{ starts, options string }{
	{"go test", "-v -race -cover -json -failfast -count= -timeout= -p= -parallel= -shuffle="},
	{"cargo test", "-q --quiet -v --verbose --workspace --all --no-fail-fast"},
	{"pytest", "-q -qq -v -vv -s -x -l -ra -rA --quiet --verbose --tb= --color= --durations= --no-header --no-summary"},
	{"npm test,pnpm test,yarn test", "-- -s --silent --watch=false --watchAll=false --run --ci --coverage --verbose --color --reporter="},
	{"mvn test", "-q -B -ntp -e --quiet --batch-mode --no-transfer-progress"},
	{"gradle test,./gradlew test", "-q --quiet -i --info --stacktrace --no-daemon --console="},
}

// essence is what a command checks in a project at root, whatever it tells of it; "" if that
// is not known.
func essence(root, command string) string {
	command = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(command), "2>&1"))
	dir := "."
	for {
		head, rest, ok := strings.Cut(command, "&&")
		if !ok || !strings.HasPrefix(head, "cd ") {
			break
		}
		goes, ok := fields(head)
		if !ok || len(goes) != 2 {
			return ""
		}
		if dir = below(root, dir, goes[1]); dir == "" {
			return ""
		}
		command = strings.TrimSpace(rest)
	}
	words, ok := fields(command)
	if !ok {
		return ""
	}
	for len(words) > 0 {
		name, _, set := strings.Cut(words[0], "=")
		if !set || !slices.Contains(settings, name) {
			break
		}
		words = words[1:]
	}
	if len(words) > 0 && words[0] == "time" {
		words = words[1:]
	}
	if len(words) > 2 && words[0] == "timeout" && isDuration(words[1]) {
		words = words[2:]
	}
	for _, before := range []string{"python -m", "python3 -m", "uv run", "poetry run", "pipenv run", "pdm run", "hatch run"} {
		if rest, ok := cutWords(words, before); ok && len(rest) > 0 && rest[0] == "pytest" {
			words = rest
		}
	}
	if to, rest := goesTo(words); to != "" {
		if dir = below(root, dir, to); dir == "" {
			return ""
		}
		words = rest
	}
	if len(words) > 1 && slices.Contains([]string{"npm", "pnpm", "yarn"}, words[0]) {
		words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "run" || w == "-s" || w == "--silent" })
		if len(words) > 1 && words[1] == "t" && words[0] != "yarn" {
			words[1] = "test"
		}
	}
	for _, r := range tellers {
		plain := slices.DeleteFunc(slices.Clone(words), func(w string) bool {
			name, _, valued := strings.Cut(w, "=")
			return slices.Contains(strings.Fields(r.options), w) || valued && slices.Contains(strings.Fields(r.options), name+"=")
		})
		for start := range strings.SplitSeq(r.starts, ",") {
			if _, ok := cutWords(plain, start); ok {
				return inFolder(dir, strings.Join(plain, " "))
			}
		}
	}
	return ""
}

// below is where one goes from a folder of the project by cd, as seen from its root; "" if
// that is elsewhere or not known.
func below(root, dir, to string) string {
	if to == "" || strings.HasPrefix(to, "-") {
		return ""
	}
	if path.IsAbs(to) {
		rest, ok := strings.CutPrefix(path.Clean(to)+"/", strings.TrimSuffix(root, "/")+"/")
		if dir, to = ".", rest; !ok || root == "" {
			return ""
		}
	}
	if dir = path.Join(dir, to); dir == ".." || strings.HasPrefix(dir, "../") {
		return ""
	}
	return dir
}

// fields are the words of a command as the shell gives them to a program, if nothing in it
// means more to the shell than quotes do.
func fields(command string) (words []string, ok bool) {
	var (
		word strings.Builder
		any  bool // of a word
	)
	for i := 0; i < len(command); i++ {
		switch c := command[i]; {
		case c == ' ' || c == '\t':
			if any {
				words = append(words, word.String())
			}
			word.Reset()
			any = false
			continue
		case c == '\'' || c == '"':
			n := strings.IndexByte(command[i+1:], c)
			if n < 0 || c == '"' && strings.ContainsAny(command[i+1:i+1+n], "$`\\") {
				return nil, false
			}
			word.WriteString(command[i+1 : i+1+n])
			i += 1 + n
		case c == '\\' && i+1 < len(command) && command[i+1] != '\n':
			i++
			word.WriteByte(command[i])
		case strings.IndexByte(";|&<>$`()\\\n*?[{~#!", c) >= 0:
			return nil, false
		default:
			word.WriteByte(c)
		}
		any = true
	}
	if any {
		words = append(words, word.String())
	}
	return words, true
}

// cutWords is what of words follows start, if they begin with it.
func cutWords(words []string, start string) ([]string, bool) {
	first := strings.Fields(start)
	if len(words) < len(first) || !slices.Equal(words[:len(first)], first) {
		return nil, false
	}
	return slices.Clone(words[len(first):]), true
}
