package verify

import (
	"slices"
	"strings"
)

// Stands reports whether a check that was run stands for another: it is that one, but
// perhaps for how much it tells, how it is started and how fast it is.
func Stands(ran, check string) bool {
	if strings.TrimSpace(ran) == check {
		return true
	}
	same := essence(ran)
	return same != "" && same == essence(check)
}

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

// essence is what a command checks, whatever it tells of it; "" if that is not known.
func essence(command string) string {
	command = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(command), "2>&1"))
	folder := ""
	if head, rest, ok := strings.Cut(command, " && "); ok && strings.HasPrefix(head, "cd ") {
		folder, command = head+" && ", rest
	}
	if strings.ContainsAny(command, ";|&<>$`()\"'\\\n") {
		return ""
	}
	words := strings.Fields(command)
	for _, before := range []string{"python -m", "python3 -m", "uv run", "poetry run", "pipenv run", "pdm run", "hatch run"} {
		if rest, ok := cutWords(words, before); ok && len(rest) > 0 && rest[0] == "pytest" {
			words = rest
		}
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
				return folder + strings.Join(plain, " ")
			}
		}
	}
	return ""
}

// cutWords is what of words follows start, if they begin with it.
func cutWords(words []string, start string) ([]string, bool) {
	first := strings.Fields(start)
	if len(words) < len(first) || !slices.Equal(words[:len(first)], first) {
		return nil, false
	}
	return slices.Clone(words[len(first):]), true
}
