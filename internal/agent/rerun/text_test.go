package rerun

import (
	"encoding/json"
	"strings"
	"testing"

	"coder/internal/core/event"
)

func TestWhatMayDiffer(t *testing.T) {
	same := map[string]string{
		"Mon Nov 16 06:24:08 UTC 2026":                                                         "Tue Nov 17 09:01:10 UTC 2026",
		"2026-11-16T06:24:08.628115896Z it began":                                              "2026-11-17T00:00:01Z it began",
		"-rw-r--r-- 1 a a 12 Nov 16 06:24 a.txt":                                               "-rw-r--r-- 1 a a 12 Nov 17 19:02 a.txt",
		"total 36\ndrwxr-xr-x 11 a a 4096 Nov 16 06:24 ..\n-rw-r--r--  1 a a 5 Nov 16 06:24 x": "total 8\ndrwx------ 3 root root 60 Nov 17 06:24 ..\n-rw-r--r-- 1 a a 5 Nov 17 06:24 x",
		"16 Nov 2026 06:24":                                                                    "17 Nov 2026 07:00",
		"at 1794810248 or 1794810248628":                                                       "at 1794810300 or 1794810300001",
		"ok  \tcoder/x\t0.013s":                                                                "ok  \tcoder/x\t(cached)",
		"took 1m2.5s, then 12 ms":                                                              "took 3m0s, then 250 ms",
		"wrote /tmp/tmp.Zd3FKe8Qvv/x":                                                          "wrote /tmp/tmp.Ab93Fe8Qzz/x",
		"/tmp/go-build1794810248/b001":                                                         "/tmp/go-build3017/b001",
		"[main 1a2b3c4] two":                                                                   "[main fe98d7c] two",
		"task_hac3jmey3u22 and ui_aaaabbbbcccc":                                                "task_zzzzyyyyxxxx and ui_ddddeeeeffff",
		"2644698 two":                                                                          "a644698 two",
		"v1-1-g31c50fb and v1-2-g1234567":                                                      "v1-1-ga4b3294 and v1-2-gabcdefa",
		"3187537 two\n1a2b3c4 one":                                                             "8028905 two\n4028905 one",
		"A=1\nGIT_AUTHOR_DATE=2026-11-16T06:24:08+00:00\nB=2":                                  "A=1\nB=2",
		"pid 4711": "pid 12",
		"8f14e45f-ceea-467f-a9b1-0123456789ab is its id": "00000000-ceea-467f-a9b1-0123456789ab is its id",
	}
	for a, b := range same {
		if !alike(a, b) {
			t.Errorf("%q and %q are told apart: %q, %q", a, b, normal(a), normal(b))
		}
	}
	for a, b := range map[string]string{
		"exit code 1": "exit code 2", "line 12": "line 13", "version 1.2.3": "version 1.2.4", "deadbeef": "defaced", "1234567": "7654321",
		"call_1_1": "call_1_2", "/tmp/a": "/tmp/b", "3 files": "4 files", "port 8080": "port 9090",
		"-rw-r--r-- 1 a a 12 Nov 16 06:24 x": "-rw-r--r-- 1 a a 13 Nov 16 06:24 x", "-rw-r--r-- 1 a a 1 Nov 16 06:24 y": "-rwxr--r-- 1 a a 1 Nov 16 06:24 y",
		"drwxr-xr-x 2 a a 40 Nov 16 06:24 x": "drwxr-xr-x 2 a a 40 Nov 16 06:24 y", "total 36": "total 37",
		"8ef67e7cf7addbb1946c13778f51f8bfa3ee261b1016f6828796dd9fca632fc4": "9ef67e7cf7addbb1946c13778f51f8bfa3ee261b1016f6828796dd9fca632fc4",
	} {
		if alike(a, b) {
			t.Errorf("%q and %q are taken for the same: %q", a, b, normal(a))
		}
	}
}

// What a pattern finds comes the newest first, and a copy's files are not as old: the
// order is not compared, what was found is. A commit is made at another time, so its
// name is another, even if both look like numbers.
func TestTheOrderOfTimesMayDiffer(t *testing.T) {
	same := func(tool, a, b string) bool {
		c := newComparison(New("s", "/ws", nil), Side{}, Side{}, Exceptions{})
		done := func(output string) event.Record {
			return event.Record{Event: event.ToolCallCompleted{Tool: tool, Output: json.RawMessage(output)}}
		}
		return c.differing(pair{done(a), done(b)}) == nil
	}
	one, two := `{"matches":["a","b"],"count":2}`, `{"matches":["b","a"],"count":2}`
	if !same("glob", one, two) {
		t.Error("the order of a glob is compared")
	}
	if same("glob", one, `{"matches":["a","c"],"count":2}`) || same("grep", one, two) {
		t.Error("what was found is not compared, or the order of a tool that has one")
	}
	one, two = `{"commit":"5256490","files":1}`, `{"commit":"2673219","files":1}`
	if !same("git_commit", one, two) {
		t.Error("the name of a commit is compared")
	}
	if same("git_commit", one, `{"commit":"5256490","files":2}`) {
		t.Error("what was committed is not compared")
	}
}

func TestPathsStandForEachOther(t *testing.T) {
	for text, want := range map[string]string{
		"/home/ada/shop":              "<workspace>",
		"in /home/ada/shop/a.txt now": "in <workspace>/a.txt now",
		"/home/ada/shop-2/a.txt":      "/home/ada/shop-2/a.txt",
		`"cd /home/ada/shop && ls"`:   `"cd <workspace> && ls"`,
		"/home/ada/shop:/home/ada":    "<workspace>:/home/ada",
	} {
		if got := swap(text, "/home/ada/shop", "<workspace>"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestCallsThatAreNotMadeAgain: what left the bounds of this machine is known by
// its effects and by what it asked for.
func TestCallsThatAreNotMadeAgain(t *testing.T) {
	for _, tt := range []struct {
		call event.ToolCallRequested
		want bool
	}{
		{event.ToolCallRequested{Tool: "fetch", Effects: []event.Effect{{Kind: event.EffectNet, Target: "https://x.org"}}}, true},
		{event.ToolCallRequested{Tool: "mcp__a__b", Effects: []event.Effect{{Target: "mcp__a__b"}}}, true},
		{event.ToolCallRequested{Tool: "lsp_hover", Effects: []event.Effect{{Kind: event.EffectRead, Target: "a.go"}}}, true},
		{event.ToolCallRequested{Tool: "bash", Input: json.RawMessage(`{"command":"x","unconfined":true}`), Effects: []event.Effect{{Kind: event.EffectExec, Target: "x"}}}, true},
		{event.ToolCallRequested{Tool: "bash", Input: json.RawMessage(`{"command":"x","unconfined":false}`), Effects: []event.Effect{{Kind: event.EffectExec, Target: "x"}}}, false},
		{event.ToolCallRequested{Tool: "read", Effects: []event.Effect{{Kind: event.EffectRead, Target: "a"}}}, false},
	} {
		if got := outside(tt.call); got != tt.want {
			t.Errorf("%s %s: %v", tt.call.Tool, tt.call.Input, got)
		}
	}
}

func TestWhereAPartIsLeftOutMayDifferALittle(t *testing.T) {
	text := func(head, tail, others string) string {
		return "told:\n" + head + "\n[812 bytes are not shown here; all of it is elsewhere]\n" + tail + "\nand then " + others
	}
	was := text("1\n2\n3\n4\n5", "95\n96\n97", "x")
	tests := []struct {
		name string
		is   string
		want bool
	}{
		{"the same", was, true},
		{"less before", strings.Replace(text("1\n2\n3", "95\n96\n97", "x"), "812", "816", 1), true},
		{"more after", text("1\n2\n3\n4\n5", "93\n94\n95\n96\n97", "x"), true},
		{"other words before", text("1\nzwei\n3\n4\n5", "95\n96\n97", "x"), false},
		{"other words after", text("1\n2\n3\n4\n5", "95\n96\n97", "y"), false},
		{"far less", text("1", strings.Repeat("9\n", 40), "x"), false},
		{"nothing left out", "told:\n1\n2\n3\n4\n5\n95\n96\n97\nand then x", false},
	}
	for _, tt := range tests {
		if got := alike(was, tt.is); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
