package patch_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/host/patch"
)

// git runs git in dir, with nothing of anybody's configuration.
func git(t *testing.T, dir string, stdin []byte, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, &errs)
	}
	return string(out), err
}

func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
}

// variants are the ways in which a file's text can be odd.
var variants = []func(string) string{
	func(s string) string { return s },
	func(s string) string { return strings.TrimSuffix(s, "\n") },
	func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	func(s string) string { return "\ufeff" + s },
	func(s string) string { return strings.ReplaceAll(s, "1\n", "1 \f\v\u2028\n") },
}

// TestGitAppliesEveryDiffWePrint makes one patch of many files.
func TestGitAppliesEveryDiffWePrint(t *testing.T) {
	needGit(t)
	const cases = 2000
	dir, want := t.TempDir(), make(map[string]string)
	var all strings.Builder
	for i := range cases {
		r := rand.New(rand.NewPCG(3, uint64(i)))
		lines := []int{1, 6, 30, 120}[i%4]
		old := randomFile(r, lines, []int{1, 2, 8, 400}[i/4%4])
		vary, varyNew := variants[i/16%len(variants)], variants[i/16%len(variants)]
		if i%7 == 0 {
			varyNew = variants[r.IntN(len(variants))]
		}
		before, after := vary(strings.Join(old, "")), varyNew(strings.Join(edited(r, old, 1+r.IntN(4)), ""))
		name := fmt.Sprintf("%s%04d", []string{"f", "a b ", "ü", `q"`, "d/e"}[i%5], i)
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		switch {
		case i%31 == 0: // a new file
			text, _, _ := patch.Unified(name, nil, []byte(after))
			all.WriteString(text)
		case i%37 == 0: // one less
			text, _, _ := patch.Unified(name, []byte(before), nil)
			all.WriteString(text)
			after = ""
			fallthrough
		default:
			if i%37 != 0 {
				text, _, _ := patch.Unified(name, []byte(before), []byte(after))
				all.WriteString(text)
			}
			if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want[path] = after
	}
	if _, err := git(t, dir, []byte(all.String()), "apply", "--whitespace=nowarn", "-"); err != nil {
		t.Fatal(err)
	}
	for path, text := range want {
		got, err := os.ReadFile(path)
		if string(got) != text || err != nil && text != "" {
			t.Errorf("%s is not what the diff was made from: %v", path, err)
		}
	}
}

// TestGitAppliesWhatIsMoreThanLines is about names, modes and files of nothing.
func TestGitAppliesWhatIsMoreThanLines(t *testing.T) {
	needGit(t)
	names := []string{"f", "a b", "tab\tbed", `back\slash`, `q"uote`, "ü", "nb\u00a0sp", "del\x7f", "bad\xff", "end ", "d/e b/f", "new\nline", "\u202eright", "-", "b/a/b"}
	tried := 0
	for _, name := range names {
		for what, c := range map[string]patch.Change{
			"changed":          {Path: name, Old: []byte("a\nb\n"), New: []byte("a\nc\n")},
			"made":             {Path: name, New: []byte("a\n")},
			"made empty":       {Path: name, New: []byte{}},
			"deleted":          {Path: name, Old: []byte("a\n")},
			"deleted empty":    {Path: name, Old: []byte{}},
			"moved":            {Path: "to/" + name, From: name, Old: []byte("a\nb\n"), New: []byte("a\nb\n")},
			"moved empty":      {Path: "to/" + name, From: name, Old: []byte{}, New: []byte{}},
			"moved and new":    {Path: name + "2", From: name, Old: []byte("a\nb\n"), New: []byte("a\nc\n")},
			"made to run":      {Path: name, Old: []byte("a\n"), New: []byte("a\n"), Mode: patch.Executable},
			"moved to run":     {Path: "to/" + name, From: name, Old: []byte("a\n"), New: []byte("b\n"), Mode: patch.Executable},
			"made, to run":     {Path: name, New: []byte("a\n"), Mode: patch.Executable},
			"made, empty, run": {Path: name, New: []byte{}, Mode: patch.Executable},
		} {
			dir := t.TempDir()
			from := name
			if c.Old != nil {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, from)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, from), c.Old, 0o644); err != nil {
					t.Skip("this file system has no such names: ", err)
				}
			}
			text, _, _ := c.Diff(c.Mode)
			tried++
			if _, err := git(t, dir, []byte(text), "apply", "-"); err != nil {
				t.Errorf("%s %q: %v\n%s", what, name, err, text)
				continue
			}
			got, err := os.ReadFile(filepath.Join(dir, c.Path))
			if c.New == nil && !os.IsNotExist(err) || c.New != nil && (err != nil || !bytes.Equal(got, c.New)) {
				t.Errorf("%s %q: %q, %v\n%s", what, name, got, err, text)
			}
			if info, err := os.Stat(filepath.Join(dir, c.Path)); c.Mode == patch.Executable && (err != nil || info.Mode()&0o111 == 0) {
				t.Errorf("%s %q: it cannot be run\n%s", what, name, text)
			}
			if c.From != "" && exists(filepath.Join(dir, c.From)) {
				t.Errorf("%s %q: the old one is still there", what, name)
			}
			p, err := patch.Parse(text)
			if err != nil || len(p) != 1 {
				t.Errorf("%s %q: we do not read it: %v\n%s", what, name, err, text)
				continue
			}
			before := map[string][]byte{}
			if c.Old != nil {
				before[from] = c.Old
			}
			changes, err := p.Apply(before)
			if err != nil || len(changes) != 1 || changes[0].Path != c.Path || changes[0].From != c.From || !bytes.Equal(changes[0].New, c.New) {
				t.Errorf("%s %q: we make %+v of it, %v\n%s", what, name, changes, err, text)
			}
		}
	}
	t.Logf("%d diffs", tried)
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// TestWeApplyTheDiffsOfRealCommits takes them from this project's own history,
// in every style git has.
func TestWeApplyTheDiffsOfRealCommits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	needGit(t)
	log, err := git(t, ".", nil, "rev-list", "--no-merges", "--max-count=40", "HEAD")
	if err != nil {
		t.Skip("this is no checkout with a history")
	}
	styles := [][]string{
		{"-U0"}, {"-U1"}, {"-U3"}, {"-U12"}, {"--patience"}, {"--histogram"}, {"--minimal", "-U2"}, {"--function-context"},
		{"--no-prefix"}, {"--src-prefix=old/", "--dst-prefix=new/"}, {"--no-renames"}, {"-M30", "-U0"}, {"--inter-hunk-context=9"}, {"--full-index"},
	}
	applied := 0
	for i, commit := range strings.Fields(log) {
		style := styles[i%len(styles)]
		diff, err := git(t, ".", nil, append([]string{"diff-tree", "-p", "-M", "--no-commit-id", "--root", "--no-textconv", "--no-ext-diff", "-r"}, append(style, commit)...)...)
		if err != nil {
			t.Skip("the history is cut off: ", err)
		}
		if strings.Contains(diff, "GIT binary patch") || strings.Contains(diff, "\nBinary files ") || strings.Contains(diff, "prefix=old/") {
			continue
		}
		p, err := patch.Parse(diff)
		if err != nil {
			if len(diff) < 4<<20 && strings.Contains(diff, "\n@@ ") {
				t.Errorf("%s %v: %v", commit, style, err)
			}
			continue
		}
		before := make(map[string][]byte)
		for j := range p {
			for _, side := range []*string{&p[j].Old, &p[j].New} {
				*side = strings.TrimPrefix(strings.TrimPrefix(*side, "old/"), "new/")
			}
			if p[j].Old != "" {
				text, err := git(t, ".", nil, "show", commit+"^:"+p[j].Old)
				if err != nil {
					t.Skip("the history is cut off: ", err)
				}
				before[p[j].Old] = []byte(text)
			}
		}
		changes, err := p.Apply(before)
		if err != nil {
			t.Errorf("%s %v: %v", commit, style, err)
			continue
		}
		for _, c := range changes {
			if c.New == nil {
				continue
			}
			want, err := git(t, ".", nil, "show", commit+":"+c.Path)
			if err != nil || string(c.New) != want {
				t.Errorf("%s %v: %s is not what git has: %v", commit, style, c.Path, err)
			}
			applied++
		}
	}
	t.Logf("%d files", applied)
}
