package workspace_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"coder/internal/host/workspace"
)

// ignoreFixture has a .gitignore at two levels and something for every kind of line.
var ignoreFixture = map[string]string{
	".gitignore": "# comment\n\n*.log\n!keep.log\n/top\nbuild/\ndocs/*.pdf\n**/cache\nlogs/**\n!logs/important\n" +
		"a?c\nx[!0-9]z\nspace\\ \n{brace}\n\\#hash\ntrail   \nwin\r\nsub/**/leaf\n[bad\n",
	"sub/.gitignore":                  "local\n!kept.log\n/anchored\n",
	"a.log":                           "",
	"keep.log":                        "",
	"top":                             "",
	"sub/top":                         "",
	"build/x":                         "",
	"sub/build":                       "a file, not a directory",
	"docs/a.pdf":                      "",
	"docs/b/c.pdf":                    "",
	"docs/a.txt":                      "",
	"one/two/cache/z":                 "",
	"logs/x":                          "",
	"logs/important":                  "",
	"logs/deep/x":                     "",
	"abc":                             "",
	"abbc":                            "",
	"xaz":                             "",
	"x1z":                             "",
	"space ":                          "",
	"{brace}":                         "",
	"brace":                           "",
	"#hash":                           "",
	"trail":                           "",
	"win":                             "",
	"sub/leaf":                        "",
	"sub/m/n/leaf":                    "",
	"sub/local":                       "",
	"local":                           "",
	"sub/kept.log":                    "",
	"sub/other.log":                   "",
	"sub/anchored":                    "",
	"sub/inner/anchored":              "",
	strings.Repeat("n", 200) + ".log": "",
}

// What is visited is what git would list.
func TestIgnoreAgreesWithGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	ws, dir, _ := open(t)
	for name, text := range ignoreFixture {
		put(t, dir+"/"+name, text)
	}
	run := func(args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	run("init", "-q")
	want := strings.Split(strings.TrimSuffix(run("ls-files", "-coz", "--exclude-standard"), "\x00"), "\x00")
	var got []string
	for e := range ws.Walk(t.Context(), ".", 0) {
		if !e.Ignored && !e.IsDir() {
			got = append(got, e.Path)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("visited %q\ngit says %q", got, want)
	}
}

func TestRulesFromAboveHoldBelow(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/.gitignore", "*.o\n")
	put(t, dir+"/a/.gitignore", "*.tmp\n")
	put(t, dir+"/a/b/x.o", "")
	put(t, dir+"/a/b/x.tmp", "")
	put(t, dir+"/a/b/x.c", "")
	for e := range ws.Walk(t.Context(), "a/b", 0) {
		if want := e.Path != "a/b/x.c"; e.Ignored != want {
			t.Errorf("%s ignored = %v", e.Path, e.Ignored)
		}
	}
}

func TestAnIgnoreListCoversWhatGitWouldIgnore(t *testing.T) {
	list := workspace.ParseIgnore([]byte("# comment\n/private/*\n!/private/open.md\n*.dump\nlogs/\n"))
	for rel, want := range map[string]bool{
		"private/plan.md": true, "private/open.md": false, "private/deep/x": true, "other/private/x": false,
		"a/b/key.dump": true, "KEY.DUMP": true, "logs/x": true, "a/logs/x/y": true, "logs": false, "": false, "# comment": false,
	} {
		if got := list.Match(rel); got != want {
			t.Errorf("%q is covered: %v, want %v", rel, got, want)
		}
	}
	if (workspace.IgnoreList{}).Match("x") {
		t.Error("the zero list covers a file")
	}
}
