package risk

import (
	"path"
	"strings"
	"sync"
)

// steering are the files by which a project, or a person's machine, tells
// programs what to run and whom to obey later. A write to one of them outlives
// the approval of whatever wrote it, so each is asked about by itself.
//
// An entry is a path of one or more parts. It stands for that path at any depth
// and for all below it; a part may hold stars. One that begins with a slash
// stands for that place alone.
var steering = []struct{ what, at string }{
	{"the repository's own files", ".git .hg .svn .jj .sl .bzr"},
	{"the program's own files", ".coder"},
	{"the instructions given to the model", "agents.md agents.override.md agents.local.md .agents"},
	{"the instructions of another agent", `claude.md claude.local.md .claude gemini.md .gemini qwen.md .qwen .codex .opencode opencode.json opencode.jsonc
		.cursorrules .cursor .cursorignore .windsurf* .clinerules* .cline .roo .roorules* .roomodes .kilocode* .aider* .continue .continuerules .amp .goose .goosehints
		.agent agent.md .openhands .sourcegraph .cody .codeium .codebuddy .amazonq .factory .droid .zencoder .ruler .copilot .tabnine* .pearai*
		.augment* .junie .trae .kiro .crush crush.md .crush.json warp.md .rules .github/copilot-instructions.md .github/instructions .github/prompts .github/chatmodes .github/agents`},
	{"the tools that agents are given", ".mcp.json mcp.json .mcp mcp_settings.json .claude-plugin hooks/hooks.json"},
	{"what the project's servers run", `.github/workflows .github/actions .github/dependabot.y*ml .gitlab-ci.y*ml .gitlab .circleci .travis.yml azure-pipelines*.y*ml .azure-pipelines
		jenkinsfile .buildkite .drone.y*ml .woodpecker* bitbucket-pipelines.yml appveyor.yml .appveyor.yml .gitea .forgejo .semaphore cloudbuild.y*ml .cirrus.yml .teamcity
		.builds .build.yml buildspec.y*ml .tekton .harness codefresh.y*ml wercker.yml .scrutinizer.yml renovate.json* .renovaterc* .mergify.yml codeowners`},
	{"what an editor runs or obeys", `.vscode .idea .fleet .vs .zed *.code-workspace *.sublime-project .exrc .nvimrc .nvim.lua .vimrc .lvimrc .gvimrc .dir-locals.el .emacs .emacs.d
		.vim .nvim .helix .nova .lapce .theia .kakrc .luarc.json* .neoconf.json .vimspector.json .ycm_extra_conf.py .clangd .ccls .ctags.d *.sublime-workspace
		.config/nvim .config/helix .devcontainer .devcontainer.json devcontainer.json .gitpod.yml .replit .settings`},
	{"what git runs or obeys", `.husky .githooks .git-hooks .gitattributes .gitmodules .gitconfig .config/git .pre-commit-config.y*ml .pre-commit-hooks.y*ml lefthook.* lefthook-local.*
		.lefthook* .overcommit.yml .lintstagedrc* lint-staged.config.* .simple-git-hooks.* simple-git-hooks.*`},
	{"what a shell runs when it comes by", ".envrc .direnv .env.fish .autoenv*"},
	{"which programs a tool chain runs", `rust-toolchain rust-toolchain.toml .cargo/config .cargo/config.toml .tool-versions mise.toml .mise.toml .mise mise.local.toml .rtx.toml .asdfrc
		.python-version .node-version .nvmrc .ruby-version .java-version .sdkmanrc .npmrc .yarnrc* .yarn .pnp.* .pnpmfile.* .bunfig.toml bunfig.toml .bazelrc .bazelversion .buckconfig
		.mvn .m2 .gradle gradle/wrapper .sbtopts .jvmopts .bundle .gemrc .pypirc pip.conf pip.ini .config/pip sitecustomize.py usercustomize.py *.pth .terraformrc .condarc`},
	{"what a program runs when it starts", `.gdbinit .lldbinit .irbrc .pryrc .rprofile .renviron .ghci .ocamlinit .pythonrc* .ipython .jupyter .curlrc .wgetrc .screenrc .tmux.conf .tmux
		.pdbrc .perldb .proverc .ackrc .duckdbrc .psqlrc .sqliterc .mongorc.js .mongoshrc.js .nanorc .config/fish .config/zsh .config/bash .config/tmux`},
	{"a file the shell runs by itself", `.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc
		.login .inputrc .xprofile .xinitrc .xsession .pam_environment`},
	{"a file the system runs by itself", "/etc/profile* /etc/cron* /var/spool/cron /etc/systemd /etc/init.d /etc/rc* /etc/ld.so* .config/systemd .config/autostart library/launchagents .local/share/applications"},
	{"programs that are found by their names", ".local/bin .cargo/bin go/bin node_modules/.bin .venv/bin .venv/scripts venv/bin venv/scripts"},
	{"the keys and settings of ssh", ".ssh"},
	{"a file that decides what may run", "/etc/sudoers* /etc/pam.d /etc/doas.conf"},
}

// A steer is one entry, in parts.
type steer struct {
	parts []string
	fixed bool
	what  string
}

// steers are the entries by the first part, those with a star in it apart.
var steers = sync.OnceValue(func() (all struct {
	plain map[string][]steer
	other []steer
}) {
	all.plain = make(map[string][]steer)
	for _, s := range steering {
		for at := range strings.FieldsSeq(s.at) {
			rest, fixed := strings.CutPrefix(at, "/")
			one := steer{strings.Split(rest, "/"), fixed, s.what}
			if strings.Contains(one.parts[0], "*") {
				all.other = append(all.other, one)
			} else {
				all.plain[one.parts[0]] = append(all.plain[one.parts[0]], one)
			}
		}
	}
	return all
})

// Protected says what a path belongs to that no write should reach unasked:
// files that decide what runs or is obeyed later, or what is recorded. It is
// empty for all other paths.
func Protected(p string) string {
	p = strings.ToLower(path.Clean(strings.Map(unseen, strings.ReplaceAll(p, `\`, "/"))))
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i := range parts {
		for _, list := range [][]steer{steers().plain[parts[i]], steers().other} {
			for _, s := range list {
				if s.covers(parts[i:]) && (!s.fixed || i == 0 && path.IsAbs(p)) {
					return s.what
				}
			}
		}
	}
	return ""
}

// covers reports whether parts lead to the entry, below it, or to a folder that
// holds it.
func (s steer) covers(parts []string) bool {
	for i, want := range s.parts {
		if i == len(parts) {
			return true
		}
		if ok, err := path.Match(want, parts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// unseen drops the runes that some file systems pass over in names.
func unseen(r rune) rune {
	if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
		return -1
	}
	return r
}

// protected is Protected of a path and of where it leads.
func (f Facts) protected(p string) string {
	if what := Protected(p); what != "" {
		return what
	}
	if real := f.real(p); real != p {
		return Protected(real)
	}
	return ""
}
