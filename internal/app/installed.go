package app

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"coder/internal/host/repofile"
)

// Installation says how this program was installed.
type Installation struct {
	Method string `json:"how,omitempty"` // a key of ways; "" if unknown
	Path   string `json:"path,omitempty"`
}

// installMethod is a way to install coder: how to remove and how to update it.
type installMethod struct{ remove, update string }

var installMethods = map[string]installMethod{
	"deb":  {"sudo apt remove coder-agent", "download the newer package, then: sudo apt install ./PACKAGE.deb"},
	"rpm":  {"sudo rpm -e coder-agent", "download the newer package, then: sudo rpm -U PACKAGE.rpm"},
	"npm":  {"npm uninstall -g coder-agent", "npm update -g coder-agent"},
	"pip":  {"pip uninstall coder-agent", "pip install --upgrade coder-agent"},
	"brew": {"brew uninstall coder-agent", "brew upgrade coder-agent"},
	"nix":  {"nix profile remove coder-agent", "nix profile upgrade coder-agent"},
	"go":   {"rm PATH", "in a clone: git pull && go install ./cmd/coder"},
	"make": {"in the clone: make uninstall, with the same PREFIX",
		"in the clone: git pull && make install, with the same PREFIX"},
	"archive": {"cd PREFIX && rm -rf bin/coder bin/coder.old bin/coder-agent share/coder share/man/man1/coder.1 share/man/man1/coder-agent.1" +
		" share/zsh/site-functions/_coder share/bash-completion/completions/coder share/bash-completion/completions/coder-agent" +
		" share/fish/vendor_completions.d/coder.fish share/fish/vendor_completions.d/coder-agent.fish", ""},
}

// RemoveCommand returns the command that removes coder, or "" if its installation is unknown.
func (i Installation) RemoveCommand() string {
	prefix := filepath.Dir(filepath.Dir(i.Path))
	return strings.NewReplacer("PATH", i.Path, "PREFIX", prefix).Replace(installMethods[i.Method].remove)
}

// UpdateCommand returns how to update coder, or "" if coder can do that itself or its installation is unknown.
func (i Installation) UpdateCommand() string { return installMethods[i.Method].update }

// installedFile is written by every installer. Its first word is a key of ways.
const installedFile = "share/coder/installed"

// FindInstallation finds out how this program was installed, from the installed file or from its path.
func FindInstallation(env Env) Installation {
	i := Installation{Path: env.Exe}
	if real, err := filepath.EvalSymlinks(env.Exe); err == nil && env.Exe != "" {
		i.Path = real
	}
	bin := filepath.Dir(i.Path)
	note, _, _ := repofile.ReadOwnHead(filepath.Join(filepath.Dir(bin), installedFile), 256)
	said, _, _ := strings.Cut(strings.TrimSpace(string(note)), " ")
	info, _ := debug.ReadBuildInfo()
	switch {
	case strings.Contains(i.Path, "/Cellar/"):
		i.Method = "brew"
	case strings.HasPrefix(i.Path, "/nix/store/"):
		i.Method = "nix"
	case filepath.Base(bin) == "bin" && installMethods[said] != (installMethod{}):
		i.Method = said
	case info != nil && info.Path == "coder/cmd/coder" && slices.Contains(goInstallDirs(env), bin):
		i.Method = "go"
	}
	return i
}

// goInstallDirs returns the folders to which go install writes.
func goInstallDirs(env Env) []string {
	bins := []string{env.Getenv("GOBIN"), filepath.Join(env.Getenv("HOME"), "go", "bin")}
	for _, dir := range filepath.SplitList(env.Getenv("GOPATH")) {
		bins = append(bins, filepath.Join(dir, "bin"))
	}
	return bins
}

// otherInstallations returns other programs named coder on the PATH, each by its
// first path. first reports whether the name coder starts one of them.
func otherInstallations(env Env) (others []string, first bool) {
	own, err := os.Stat(env.Exe)
	if err != nil {
		return nil, false
	}
	seen := []os.FileInfo{own}
	found := false
	for _, dir := range filepath.SplitList(env.Getenv("PATH")) {
		path := filepath.Join(dir, "coder")
		info, err := os.Stat(path)
		if err != nil || !filepath.IsAbs(path) || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if !slices.ContainsFunc(seen, func(s os.FileInfo) bool { return os.SameFile(s, info) }) {
			seen, others, first = append(seen, info), append(others, path), first || !found
		}
		found = true
	}
	return others, first
}

// examineDuplicates looks for other programs named coder.
func (a doctor) examineDuplicates() []Finding {
	others, first := otherInstallations(a.Env)
	if len(others) == 0 {
		return nil
	}
	f := Finding{Item: "another coder on PATH", State: StateNoted, Detail: strings.Join(others, ", "),
		Advice: "this program comes first on PATH; run the other by its full path"}
	if first {
		f.Advice = "the other program comes first on PATH: run coder-agent, or change PATH"
	}
	return []Finding{f}
}
