package config

import "slices"

// terminalPrograms are programs that take over their terminal, or interact
// with the user. A program may be named with its first arguments.
func terminalPrograms() []string {
	return slices.Concat(editorPrograms, viewerPrograms, monitorPrograms, remotePrograms, screenPrograms, clientPrograms,
		promptingPrograms, interactiveGitCommands)
}

var (
	editorPrograms = []string{
		"vim", "vi", "nvim", "view", "ex", "rvim", "rview", "vimdiff", "vimtutor", "nano", "rnano", "pico", "emacs",
		"emacsclient -t", "emacsclient -nw", "hx", "helix", "micro",
		"joe", "jed", "kak", "mg", "ne", "vis", "zile", "ed", "editor", "sensible-editor", "hexedit",
	}
	viewerPrograms = []string{
		"less", "more", "most", "man", "info", "pager", "sensible-pager", "lnav", "multitail", "jless", "vd", "tig", "gitui",
		"lazygit", "lazydocker",
		"fzf", "sk", "mc", "ranger", "nnn", "lf", "vifm", "yazi", "ncdu", "lynx", "w3m", "links", "elinks", "mutt", "neomutt",
		"dialog", "whiptail",
	}
	monitorPrograms = []string{"top", "htop", "btop", "atop", "iotop", "iftop", "nethogs", "nvtop", "powertop",
		"glances", "watch", "k9s", "ctop"}
	remotePrograms = []string{"ssh", "sftp", "telnet", "mosh", "minicom", "picocom"}
	screenPrograms = []string{"tmux", "screen", "zellij", "clear", "reset", "stty"}
	clientPrograms = []string{"psql", "pgcli", "mysql", "mycli", "mariadb", "sqlite3", "litecli", "mongo", "sqlplus",
		"cqlsh", "gdb", "lldb", "dlv", "rdbg", "rlwrap"}
	promptingPrograms = []string{
		"sudo", "sudoedit", "su", "doas", "passwd", "chsh", "chfn", "visudo", "vipw", "vigr", "cfdisk", "nmtui", "crontab -e",
		"systemctl edit",
		"update-alternatives --config", "dpkg-reconfigure", "ssh-keygen", "ssh-copy-id", "gpg --gen-key",
		"gpg --full-generate-key", "gpg --edit-key",
		"kubectl edit", "docker attach", "docker compose exec", "docker compose run", "docker login", "podman login",
		"gh auth login", "gh pr create", "gh issue create", "gh repo create", "npm init", "npm create", "npm login",
		"npm adduser", "yarn init", "poetry init", "poetry shell", "pipenv shell",
		"nix-shell", "nix develop", "nix repl", "aws configure", "gcloud init", "gcloud auth login", "terraform console",
		"rails console", "rails c", "ansible-vault edit", "ansible-vault create",
		"make menuconfig", "make nconfig", "hg commit", "svn commit", "jj describe", "jj split",
	}
	interactiveGitCommands = []string{
		"git commit", "git rebase -i", "git rebase --interactive", "git rebase --edit-todo", "git rebase --continue",
		"git cherry-pick -e", "git cherry-pick --edit", "git cherry-pick --continue",
		"git merge -e", "git merge --edit", "git merge --continue", "git revert", "git am -i", "git am --interactive",
		"git add -p", "git add --patch", "git add -i", "git add --interactive", "git add -e", "git add --edit",
		"git checkout -p", "git checkout --patch", "git restore -p", "git restore --patch",
		"git reset -p", "git reset --patch", "git stash -p", "git stash --patch", "git clean -i", "git clean --interactive",
		"git mergetool", "git difftool",
		"git tag -a", "git tag --annotate", "git tag -s", "git tag --sign", "git config -e", "git config --edit",
		"git config edit", "git branch --edit-description", "git replace --edit",
		"git notes edit", "git notes add", "git notes append", "git send-email", "git help",
	}
)
