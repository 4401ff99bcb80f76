package sandbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"coder/internal/host/repofile"
)

// inHome are the files of a home directory that others run or trust: shell
// profiles, keys, and what starts programs at login. A trailing slash marks a
// directory.
var inHome = []string{
	".profile", ".login", ".logout", ".inputrc", ".hushlogin", ".pam_environment", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
	".kshrc", ".mkshrc", ".cshrc", ".tcshrc",
	".config/fish/", ".config/nushell/", ".config/autostart/", ".config/systemd/", ".config/environment.d/", ".config/git/",
	".gitconfig", ".vimrc", ".tmux.conf",
	".ssh/", ".gnupg/", ".local/bin/", "Library/LaunchAgents/",
}

// ProtectedIn lists what a command must not change below a root: git's own
// files and the program's, and, where the root is a home directory or holds
// one, what the person's shells and login run. All of them are meant for
// Limits.Protect. Repositories deeper inside the root are not looked for.
//
// Of a home directory only what is there is listed, and the profiles of the
// common shells whether there or not.
func ProtectedIn(root, home string) []string {
	list := []string{filepath.Join(root, ".git") + "/", filepath.Join(root, ".coder") + "/"}
	if home == "" || !within(filepath.Clean(home), filepath.Clean(root)) {
		return list
	}
	if filepath.Clean(home) != filepath.Clean(root) {
		list = append(list, filepath.Join(home, ".coder")+"/")
	}
	for _, name := range inHome {
		path := filepath.Join(home, name)
		if !exists(path) && !always[name] {
			continue
		}
		if strings.HasSuffix(name, "/") {
			path += "/"
		}
		list = append(list, path)
	}
	return list
}

// ProtectedBehind lists what links in a home lead to in place of its profiles, keys and
// what starts programs at login: such files may lie in a workspace.
func ProtectedBehind(home string) (list []string) {
	if home == "" {
		return nil
	}
	home, err := filepath.EvalSymlinks(home)
	if err != nil {
		return nil
	}
	for _, name := range inHome {
		path := filepath.Join(home, name)
		real, err := filepath.EvalSymlinks(path)
		if err != nil || real == path {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			real += "/"
		}
		list = append(list, real)
	}
	return list
}

// always are those protected even where they do not exist: a shell would run
// them as soon as they did.
var always = map[string]bool{
	".profile": true, ".bashrc": true, ".bash_profile": true, ".bash_login": true,
	".zshrc": true, ".zshenv": true, ".zprofile": true, ".zlogin": true, ".ssh/": true, ".config/fish/": true, ".gitconfig": true,
}

// ProtectedInForGit lists what a command that runs git must not change in the
// repository of a root, so that it can add and commit but not have git, when it
// is run later by somebody else, run something: configuration, hooks and
// attributes, also those of submodules. Use it in place of the .git directory
// of [ProtectedIn], and only where .git is there: a repository that is to be
// made by the command cannot be protected from it.
//
// One thing cannot be held back and is to be looked for afterwards with
// [Planted].
func ProtectedInForGit(root string) (list []string) {
	list = append(list, filepath.Join(root, ".coder")+"/")
	git := filepath.Join(root, ".git")
	if info, err := os.Lstat(git); err != nil || !info.IsDir() {
		return append(list, git+"/")
	}
	list = append(list, ProtectedInGit(git)...)
	if _, err := os.Lstat(filepath.Join(git, "worktrees")); err == nil {
		list = append(list, filepath.Join(git, "worktrees")+"/")
	}
	return list
}

// ProtectedInGit lists what in the folder of a repository's own files makes git run
// something, also for its submodules.
func ProtectedInGit(git string) []string {
	list := protectedGitDir(git)
	for _, dir := range gitDirsBelow(filepath.Join(git, "modules")) {
		list = append(list, protectedGitDir(dir)...)
	}
	return list
}

// maxConfig bounds what is read of a git configuration; one that is longer, or
// cannot be read, may say anything.
const maxConfig = 1 << 20

// protectedGitDir lists what in one git directory makes git run something.
func protectedGitDir(git string) (list []string) {
	list = []string{filepath.Join(git, "config"), filepath.Join(git, "hooks") + "/", filepath.Join(git, "info") + "/"}
	config, err := repofile.Below(git).Read("config", maxConfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || bytes.Contains(bytes.ToLower(config), []byte("worktreeconfig")) || exists(filepath.Join(git, "config.worktree")) {
		list = append(list, filepath.Join(git, "config.worktree"))
	}
	if exists(filepath.Join(git, "commondir")) {
		list = append(list, filepath.Join(git, "commondir"))
	}
	return list
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// maxModules is how many entries are looked at in search of submodules.
const maxModules = 2000

// gitDirsBelow finds the git directories of submodules.
func gitDirsBelow(modules string) (dirs []string) {
	looked := 0
	_ = filepath.WalkDir(modules, func(path string, d fs.DirEntry, err error) error {
		looked++
		switch {
		case err != nil || looked > maxModules:
			return fs.SkipAll
		case !d.IsDir() || path == modules:
			return nil
		case exists(filepath.Join(path, "HEAD")) && exists(filepath.Join(path, "objects")):
			dirs = append(dirs, path)
			dirs = append(dirs, gitDirsBelow(filepath.Join(path, "modules"))...)
			return fs.SkipDir
		}
		return nil
	})
	return dirs
}

// PlantedIn finds the files of a home that shells and logins run by themselves,
// as [Planted] does. What is there before a command is protected from it; what
// is not there cannot be.
func PlantedIn(home string) map[string]string {
	found := make(map[string]string)
	for _, name := range inHome {
		if path := filepath.Join(home, name); exists(path) {
			found[path] = stateOf(path)
		}
	}
	return found
}
