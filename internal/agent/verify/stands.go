package verify

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"coder/internal/policy/risk"
)

// Covers reports whether the check that ran covers another: it is
// the same except for its verbosity, launcher, folder and speed.
func (c LastCheck) Covers(check string) bool {
	if strings.TrimSpace(c.Command) == check {
		return true
	}
	ran, same := lineEssences(c.root, c.Command), lineEssences(c.root, check)
	return len(same) > 0 && !slices.ContainsFunc(same, func(one string) bool {
		return one == "" ||
			!slices.Contains(ran, one)
	})
}

// HasFailed reports whether the check that ran is the other one,
// in the sense of Stands, and failed on the current files.
func (c LastCheck) HasFailed(check string) bool {
	if c.Command == "" || c.ExitCode == 0 || c.InconclusiveReason != "" || c.EditsSince+c.OtherChangesSince > 0 {
		return false
	}
	ran, same := lineEssences(c.root, c.Command), lineEssences(c.root, check)
	return strings.TrimSpace(c.Command) == check || len(same) == 1 && same[0] != "" && slices.Equal(ran, same)
}

// lineEssences returns what the commands check that must all pass for a line to pass; "" for an unknown one.
func lineEssences(root, line string) (all []string) {
	root = cmp.Or(strings.TrimSuffix(root, "/"), "/root of the project")
	r := risk.Analyse(line, risk.Facts{Bash: true, Cwd: root})
	matters := func(name string) bool { return !slices.Contains(harmlessVars, name) }
	if slices.ContainsFunc(r.SetVars, matters) {
		return nil
	}
	for _, c := range decidingCommands(r) {
		one := commandEssence(root, c)
		if slices.ContainsFunc(c.Vars, matters) {
			one = ""
		}
		all = append(all, one)
	}
	return all
}

// decidingCommands returns the commands that must pass for a line to pass, except those that only change the folder.
func decidingCommands(r risk.Report) []risk.Command {
	return slices.DeleteFunc(slices.Clone(r.Simple), func(c risk.Command) bool {
		return c.StartedBy != risk.StartedByLine || !c.DecidesResult || c.Name == "cd"
	})
}

// chdirOptions lists the options with which programs work in another folder, or with a file there.
var chdirOptions = map[string][]string{
	"go": {"-C"}, "npm": {"--prefix", "-C"}, "pnpm": {"-C", "--dir"}, "yarn": {"--cwd"},
	"cargo": {"--manifest-path"}, "mvn": {"-f", "--file"}, "gradle": {"-p", "--project-dir"},
}

// commandDir returns the folder that a program itself changes to, or "", and the command without that option.
func commandDir(words []string) (to string, rest []string) {
	for i, w := range words {
		name, value, valued := strings.Cut(w, "=")
		switch {
		case w == "--":
			return "", words
		case !slices.Contains(chdirOptions[words[0]], name):
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

// harmlessVars lists variables that do not affect what is checked.
var harmlessVars = strings.Fields("CGO_ENABLED CI FORCE_COLOR GOCACHE GOTOOLCHAIN NODE_ENV NO_COLOR PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONUNBUFFERED RUST_BACKTRACE")

// checkPrefixes are the beginnings of check commands, with the options that
// leave nothing unchecked; those that end with "=" take a value.
var checkPrefixes = []struct{ starts, options string }{
	{"go test", "-v -race -cover -json -failfast -count= -timeout= -p= -parallel= -shuffle="},
	{"cargo test", "-q --quiet -v --verbose --workspace --all --no-fail-fast"},
	{"pytest", "-q -qq -v -vv -s -x -l -ra -rA --quiet --verbose --tb= --color= --durations= --no-header --no-summary"},
	{"npm test,pnpm test,yarn test",
		"-- -s --silent --watch=false --watchAll=false --run --ci --coverage --verbose --color --reporter="},
	{"mvn test", "-q -B -ntp -e --quiet --batch-mode --no-transfer-progress"},
	{"gradle test,./gradlew test", "-q --quiet -i --info --stacktrace --no-daemon --console="},
}

// commandEssence returns what a command checks in a project at root, regardless of its output; "" if unknown.
func commandEssence(root string, c risk.Command) string {
	dir := relativeDir(root, c.Dir)
	if dir == "" || !c.Exact || c.Input || c.Output {
		return ""
	}
	words := append([]string{c.Name}, c.Args...)
	if len(words) > 2 && words[0] == "timeout" && isDuration(words[1]) {
		words = words[2:]
	}
	for _, before := range []string{"python -m", "python3 -m", "uv run", "poetry run", "pipenv run", "pdm run",
		"hatch run"} {
		if rest, ok := trimWordsPrefix(words, before); ok && len(rest) > 0 && rest[0] == "pytest" {
			words = rest
		}
	}
	if to, rest := commandDir(words); to != "" {
		if !path.IsAbs(to) {
			to = path.Join(c.Dir, to)
		}
		if dir = relativeDir(root, to); dir == "" {
			return ""
		}
		words = rest
	}
	if len(words) > 1 && slices.Contains([]string{"npm", "pnpm", "yarn"}, words[0]) {
		words = slices.DeleteFunc(slices.Clone(words), func(w string) bool {
			return w == "run" || w == "-s" ||
				w == "--silent"
		})
		if len(words) > 1 && words[1] == "t" && words[0] != "yarn" {
			words[1] = "test"
		}
	}
	for _, r := range checkPrefixes {
		plain := slices.DeleteFunc(slices.Clone(words), func(w string) bool {
			name, _, valued := strings.Cut(w, "=")
			return slices.Contains(strings.Fields(r.options), w) || valued &&
				slices.Contains(strings.Fields(r.options), name+"=")
		})
		for start := range strings.SplitSeq(r.starts, ",") {
			if _, ok := trimWordsPrefix(plain, start); ok {
				return commandInDir(dir, strings.Join(plain, " "))
			}
		}
	}
	return ""
}

// relativeDir returns a folder relative to the project's root; "" if it is elsewhere or unknown.
func relativeDir(root, dir string) string {
	rest, ok := strings.CutPrefix(path.Clean(dir)+"/", root+"/")
	if !ok {
		return ""
	}
	return path.Clean(rest)
}

// trimWordsPrefix returns the words after start, if words begin with it.
func trimWordsPrefix(words []string, start string) ([]string, bool) {
	first := strings.Fields(start)
	if len(words) < len(first) || !slices.Equal(words[:len(first)], first) {
		return nil, false
	}
	return slices.Clone(words[len(first):]), true
}
