package term

import (
	"strings"
	"testing"

	"coder/internal/core/display"
	"coder/internal/ui/term/ink"
)

func drawn(t display.Table, width int, spoken bool) string {
	var b strings.Builder
	for _, l := range tableLines(t, func(s string) string { return s }, width, spoken) {
		b.WriteString(foldLine(l, width) + "\n")
	}
	return b.String()
}

func TestColumnsOfAWideTableStayColumns(t *testing.T) {
	sources := display.Table{Header: display.TextCells("source", "what", "in the window", "total sent", "from the cache", "cost"), Rows: [][]display.Cell{
		display.DataCells("internal/agent/orchestrator/turn.go", "a file that was read", "1200", "3600", "2400", "-"),
		display.DataCells("AGENTS.md", "instructions of the project", "300", "900", "600", "-"),
	}}
	config := display.Table{Header: display.TextCells("setting", "value", "from"), Rows: [][]display.Cell{
		display.DataCells("ui.lang", `""`, "default"),
		display.DataCells("permission.command_allowlist_of_the_project", `["go","test","./...","`+strings.Repeat("x", 90)+`"]`, "default"),
	}}
	jobs := display.Table{Header: display.TextCells("job", "state", "runs for", "command", "output"), Rows: [][]display.Cell{
		display.DataCells("1", "running", "3 s", "sleep 100 && echo all is done now", "/root/.coder/sessions/20260102-030405-abcdef/jobs/1.log"),
	}}
	sessions := display.Table{Header: display.TextCells("", "session", "last used", "turns", "title"), Rows: [][]display.Cell{
		display.DataCells("", "sess_1794946062_0a19e68e", "2026-11-17 20:08", "4", "mend what is broken"),
	}}
	for _, tt := range []struct {
		name   string
		table  display.Table
		width  int
		want   string
		spoken bool
	}{
		{"sources", sources, 80, `source                        what            in the    total     from the  cost
                                              window    sent      cache
internal/agent/orchestrator/  a file that     1200      3600      2400      -
  turn.go                     was read
AGENTS.md                     instructions    300       900       600       -
                              of the project
`, false},
		{"settings", config, 80, `setting                             value                                from
ui.lang                             ""                                   default
permission.command_allowlist_of_    ["go","test","./...",                default
  the_project                       "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
                                    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
                                    xxxxxxxxxxxxxxxxxxxxx"]
`, false},
		{"jobs", jobs, 80, `job  state    runs for  command                     output
1    running  3 s       sleep 100 && echo all is    /root/.coder/sessions/
                        done now                    20260102-030405-abcdef/jobs/
                                                    1.log
`, false},
		{"no room for columns", jobs, 36, `job: 1
state: running
runs for: 3 s
command: sleep 100 && echo all is
         done now
output:
    /root/.coder/sessions/
    20260102-030405-abcdef/jobs/
    1.log
`, false},
		{"ids stay whole", sessions, 50, `session: sess_1794946062_0a19e68e
last used: 2026-11-17 20:08
turns: 4
title: mend what is broken
`, false},
		{"jobs with room", jobs, 130, `job  state    runs for  command                            output
1    running  3 s       sleep 100 && echo all is done now  /root/.coder/sessions/20260102-030405-abcdef/jobs/1.log
`, false},
		{"read aloud", jobs, 80, `job: 1
state: running
runs for: 3 s
command: sleep 100 && echo all is done now
output: /root/.coder/sessions/20260102-030405-abcdef/jobs/1.log
`, true},
		{"read aloud, with room", jobs, 130, `job  state    runs for  command                            output
1    running  3 s       sleep 100 && echo all is done now  /root/.coder/sessions/20260102-030405-abcdef/jobs/1.log
`, true},
	} {
		got := drawn(tt.table, tt.width, tt.spoken)
		if got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
		for line := range strings.Lines(got) {
			if w := ink.Width(strings.TrimSuffix(line, "\n")); w > tt.width {
				t.Errorf("%s: a line of %d columns: %s", tt.name, w, line)
			}
		}
	}
	if got, want := RenderText(display.Blocks{jobs}, 80, Options{}), drawn(jobs, 80, false); got != want {
		t.Errorf("as text:\n%s\nwant\n%s", got, want)
	}
}
