package alike

import (
	"slices"
	"strings"
	"testing"
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
		"./.coder\n./.coder/log\n./a":                                                          "./.coder\n./.coder/log\n./.coder/runs\n./.coder/undo\n./a",
		"A=1\nHOME=/home/ada\nUSER=ada\nB=2":                                                   "A=1\nHOME=/root\nUSER=root\nB=2",
		"pid 4711":                                                                             "pid 12",
		"8f14e45f-ceea-467f-a9b1-0123456789ab is its id":                                       "00000000-ceea-467f-a9b1-0123456789ab is its id",
	}
	for a, b := range same {
		if !Equal(a, b) {
			t.Errorf("%q and %q are told apart: %q, %q", a, b, Mask(a), Mask(b))
		}
	}
	for a, b := range map[string]string{
		"exit code 1": "exit code 2", "MY_HOME=/a": "MY_HOME=/b", "./.coder/agents\n./a": "./a", "line 12": "line 13", "version 1.2.3": "version 1.2.4", "deadbeef": "defaced", "1234567": "7654321",
		"call_1_1": "call_1_2", "/tmp/a": "/tmp/b", "3 files": "4 files", "port 8080": "port 9090",
		"-rw-r--r-- 1 a a 12 Nov 16 06:24 x": "-rw-r--r-- 1 a a 13 Nov 16 06:24 x", "-rw-r--r-- 1 a a 1 Nov 16 06:24 y": "-rwxr--r-- 1 a a 1 Nov 16 06:24 y",
		"drwxr-xr-x 2 a a 40 Nov 16 06:24 x": "drwxr-xr-x 2 a a 40 Nov 16 06:24 y", "total 36": "total 37",
		"8ef67e7cf7addbb1946c13778f51f8bfa3ee261b1016f6828796dd9fca632fc4": "9ef67e7cf7addbb1946c13778f51f8bfa3ee261b1016f6828796dd9fca632fc4",
	} {
		if Equal(a, b) {
			t.Errorf("%q and %q are taken for the same: %q", a, b, Mask(a))
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
		if got := Equal(was, tt.is); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestACommonTextHasGaps wherever two texts differ, and others fit it or do not.
func TestACommonTextHasGaps(t *testing.T) {
	for _, tt := range []struct {
		a, b      string
		fit, miss []string
	}{
		{"n 5\n", "n 17\n", []string{"n 3\n", "n abc\n"}, []string{"m 3\n", "n 3\nmore\n", "n"}},
		{"same\n", "same\n", nil, []string{"same\n", "other\n"}},
		{"a\nx\nb\n", "a\nb\n", []string{"a\nb\n", "a\ny\nz\nb\n"}, []string{"a\nx\n", "x\na\nb\n"}},
		{"", "a\n", []string{"", "b"}, nil},
		{"x=1 y=1\n", "x=2 y=1\n", []string{"x=9 y=1\n"}, []string{"x=9 y=2\n", "y=1\n"}},
		{"one\n1\n", "one\n2\n", []string{"one\n3\n"}, []string{"two\n3\n"}},
	} {
		text := commonText(tt.a, tt.b)
		for _, fit := range append(slices.Clone(tt.fit), tt.fit...) {
			if !matchesCommon(fit, text) {
				t.Errorf("%q does not fit %q", fit, text)
			}
		}
		for _, miss := range tt.miss {
			if matchesCommon(miss, text) {
				t.Errorf("%q fits %q", miss, text)
			}
		}
	}
	long := strings.Repeat("x\n", 9000)
	if text := commonText(long, long+"y\n"); !matchesCommon(long+"z\n", text) || matchesCommon("z\n"+long, text) {
		t.Error("in a long text more than what varied may differ")
	}
}

func TestTokensKeepTheWholeLine(t *testing.T) {
	for _, line := range []string{"", "a b  c\n", "x=1;y_2", "ä€ 12.5\n"} {
		if got := strings.Join(tokenize(line), ""); got != line {
			t.Errorf("%q becomes %q", line, got)
		}
	}
}
