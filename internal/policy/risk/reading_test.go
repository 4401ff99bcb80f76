package risk

import (
	"fmt"
	"strings"
	"testing"
)

func TestPlacesOfCommandsInALine(t *testing.T) {
	for line, want := range map[string]string{
		"go test":                       "go:line decides",
		"cd a && go test":               "cd:line decides, go:line decides",
		"go vet; go test":               "go:line, go:line decides",
		"go test || true":               "go:line, true:line",
		"go test | tail":                "go:line output, tail:line input",
		"go test | tail | cat":          "go:line output, tail:line input output, cat:line input",
		"! go test":                     "go:line",
		"go test &":                     "go:line",
		"(cd a; go test)":               "cd:line, go:line decides",
		"time { go test; }":             "go:line decides",
		"if go vet; then go test; fi":   "go:line, go:line",
		"go test > log 2>&1":            "go:line output writes decides",
		"go test 2> /dev/null":          "go:line decides",
		"cat < a":                       "cat:line input decides",
		"{ cat; ls; } <<E\nx\nE":        "cat:line input, ls:line input decides",
		"echo $(less a)":                "less:line output, echo:line decides",
		"tee >(cat)":                    "cat:line input, tee:line decides",
		"diff <(ls) b":                  "ls:line output, diff:line decides",
		"timeout 5 nice top":            "timeout:line decides, nice:wrapper decides, top:wrapper decides",
		"ls | bash -c 'vim a; cat' > f": "ls:line output, bash:line input output writes, vim:wrapper input output, cat:wrapper input output",
		"nohup vim":                     "nohup:line decides, vim:another decides",
		"eval vim":                      "eval:line decides, vim:another decides",
		"bash <<E\nvim\nE":              "bash:line input decides, vim:another input decides",
		"PAGER=less git log":            "less:another decides, git:line decides",
	} {
		var got []string
		for _, c := range Inspect(line).Simple {
			s := c.Name + ":" + []string{StartedByOther: "another", StartedByWrapper: "wrapper", StartedByLine: "line"}[c.StartedBy]
			for _, f := range []struct {
				is   bool
				name string
			}{{c.Input, " input"}, {c.Output, " output"}, {c.Writes, " writes"}, {c.DecidesResult, " decides"}} {
				if f.is {
					s += f.name
				}
			}
			got = append(got, s)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", fmt.Sprintf("%q", line), text, want)
		}
	}
}
