package judge

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// repoRuns reports whether the repository that holds dir names, in its own
// configuration, programs that reading it with git would run. What cannot be
// read may name any.
func repoRuns(dir string) bool {
	for {
		git := filepath.Join(dir, ".git")
		info, err := os.Lstat(git)
		switch {
		case err == nil && info.IsDir():
			return configRuns(filepath.Join(git, "config")) || configRuns(filepath.Join(git, "config.worktree"))
		case err == nil:
			return linkedRuns(git)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// linkedRuns looks into the repository that a .git file leads to.
func linkedRuns(file string) bool {
	text, err := os.ReadFile(file)
	target, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
	if err != nil || !ok {
		return true
	}
	dir := strings.TrimSpace(target)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(file), dir)
	}
	common := dir
	if text, err := os.ReadFile(filepath.Join(dir, "commondir")); err == nil {
		if common = strings.TrimSpace(string(text)); !filepath.IsAbs(common) {
			common = filepath.Join(dir, common)
		}
	}
	return configRuns(filepath.Join(common, "config")) || configRuns(filepath.Join(dir, "config.worktree"))
}

// runningSections and runningKeys are where a configuration names programs
// that reading runs, and that cannot be switched off for one command.
var (
	runningSections = []string{"[filter", "[include"}
	runningKeys     = []string{"textconv", "command", "clean", "smudge", "process", "fsmonitor", "sshcommand", "program", "attributesfile", "promisor", "partialclonefilter"}
)

// configRuns reports whether a git configuration names programs.
func configRuns(path string) bool {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return false
	}
	if err != nil {
		return true
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.ToLower(strings.TrimSpace(lines.Text()))
		for _, s := range runningSections {
			if strings.HasPrefix(line, s) {
				return true
			}
		}
		if strings.HasPrefix(line, "[") {
			if _, rest, ok := strings.Cut(line, "]"); ok {
				line = strings.TrimSpace(rest) // a key may follow on the line of its section
			}
		}
		key, _, _ := strings.Cut(line, "=")
		for _, k := range runningKeys {
			if strings.TrimSpace(key) == k {
				return true
			}
		}
	}
	return lines.Err() != nil
}
