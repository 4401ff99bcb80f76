package secret

import (
	"path"
	"slices"
	"strings"
)

// Place is a file or a folder known to hold keys, or what was typed.
type Place struct {
	Path string // from the home, or absolute; a trailing slash marks a folder
	For  string // the programs that cannot do their work without it
}

// ssh are the programs that reach other machines by way of ssh.
const ssh = "ssh scp sftp rsync git sshfs mosh ansible ansible-playbook git-lfs"

// Places are those known on this kind of system. What the program keeps about
// itself is not among them: nobody needs that.
var Places = []Place{
	{".ssh/", ssh}, {".git-credentials", "git git-lfs"}, {".config/git/credentials", "git git-lfs"}, {".netrc", "git curl wget ftp"},
	{".gnupg/", "gpg gpg2 git pass sops"}, {".password-store/", "pass gopass"}, {".config/op/", "op"}, {".config/sops/", "sops"}, {".config/age/", "age sops"},
	{".age/", "age sops"}, {".vault-token", "vault"}, {".local/share/keyrings/", ""}, {".local/share/kwalletd/", ""}, {".kde/share/apps/kwallet/", ""},
	{".config/gh/", "gh git"}, {".config/glab-cli/", "glab git"}, {".config/hub", "hub git"},

	{".aws/", "aws sam cdk terraform tofu eksctl pulumi serverless sls"}, {".azure/", "az azd terraform tofu pulumi"},
	{".config/gcloud/", "gcloud gsutil bq terraform tofu kubectl pulumi"}, {".boto", "gsutil"},
	{".kube/", "kubectl helm k9s kustomize istioctl argocd flux skaffold kubectx kubens oc"}, {".docker/config.json", "docker docker-compose podman buildah skopeo"},
	{".config/containers/auth.json", "podman buildah skopeo"}, {".terraform.d/", "terraform tofu"}, {".terraformrc", "terraform tofu"}, {".pulumi/credentials.json", "pulumi"},
	{".config/rclone/", "rclone"}, {".rclone.conf", "rclone"}, {".config/doctl/", "doctl"}, {".fly/", "fly flyctl"}, {".config/heroku/", "heroku"},
	{".config/netlify/", "netlify"}, {".vercel/", "vercel"}, {".local/share/com.vercel.cli/", "vercel"}, {".s3cfg", "s3cmd"}, {".oci/", "oci"}, {".databrickscfg", "databricks"},

	{".npmrc", "npm npx pnpm pnpx yarn bun bunx corepack"}, {".yarnrc.yml", "yarn"}, {".pypirc", "twine pip pip3 python python3 uv poetry flit hatch"},
	{".config/pypoetry/auth.toml", "poetry"}, {".cargo/credentials", "cargo"}, {".cargo/credentials.toml", "cargo"}, {".m2/settings.xml", "mvn mvnw mvnd"},
	{".m2/settings-security.xml", "mvn mvnw mvnd"}, {".gradle/gradle.properties", "gradle gradlew"}, {".gem/credentials", "gem bundle bundler"},
	{".bundle/config", "bundle bundler"}, {".composer/auth.json", "composer"}, {".config/composer/auth.json", "composer"}, {".nuget/NuGet/NuGet.Config", "dotnet nuget"},
	{".hex/", "mix"}, {".config/hub/", "hub"}, {".huggingface/token", "huggingface-cli hf"}, {".cache/huggingface/token", "huggingface-cli hf"}, {".kaggle/", "kaggle"},

	{".pgpass", "psql pg_dump pg_restore pg_dumpall createdb dropdb"}, {".my.cnf", "mysql mysqldump mariadb mysqladmin"}, {".mylogin.cnf", "mysql mysqldump"},
	{".mongodb/", "mongosh"}, {".dbshell", ""}, {".redisclirc", "redis-cli"},

	{".codex/auth.json", "codex"}, {".claude/.credentials.json", "claude"}, {".claude.json", "claude"}, {".gemini/", "gemini"}, {".qwen/", "qwen"},
	{".config/github-copilot/", "copilot"}, {".local/share/opencode/auth.json", "opencode"}, {".aider.conf.yml", "aider"}, {".config/io.datasette.llm/keys.json", "llm"},

	{".bash_history", ""}, {".zsh_history", ""}, {".zhistory", ""}, {".histfile", ""}, {".history", ""}, {".local/share/fish/fish_history", ""}, {".python_history", ""},
	{".node_repl_history", ""}, {".psql_history", ""}, {".mysql_history", ""}, {".sqlite_history", ""}, {".rediscli_history", ""}, {".lesshst", ""}, {".viminfo", ""},
	{".local/share/nvim/shada/", ""}, {".irb_history", ""}, {".mongorc_history", ""}, {".config/nushell/history.txt", ""},

	{".mozilla/", ""}, {".config/google-chrome/", ""}, {".config/chromium/", ""}, {".config/BraveSoftware/", ""}, {".config/microsoft-edge/", ""}, {".config/vivaldi/", ""},
	{".config/opera/", ""}, {"snap/firefox/", ""}, {"snap/chromium/", ""}, {".var/app/org.mozilla.firefox/", ""}, {".thunderbird/", ""}, {".config/Signal/", ""},
	{".config/Slack/", ""}, {".config/discord/", ""}, {".1password/", ""}, {".config/1Password/", ""}, {".config/Bitwarden/", ""}, {".config/keepassxc/", ""},
	{".bitcoin/", ""}, {".ethereum/keystore/", ""}, {".electrum/", ""}, {".config/solana/id.json", "solana"},
	{"Library/Keychains/", ""}, {"Library/Application Support/Google/Chrome/", ""}, {"Library/Application Support/Firefox/", ""}, {"Library/Cookies/", ""},

	{"/etc/shadow", ""}, {"/etc/shadow-", ""}, {"/etc/gshadow", ""}, {"/etc/gshadow-", ""}, {"/etc/sudoers", ""}, {"/etc/sudoers.d/", ""}, {"/etc/ssl/private/", ""},
	{"/etc/krb5.keytab", ""}, {"/etc/wireguard/", ""}, {"/etc/NetworkManager/system-connections/", ""}, {"/etc/docker/key.json", ""}, {"/etc/kubernetes/", ""},
	{"/etc/ssh/ssh_host_rsa_key", ""}, {"/etc/ssh/ssh_host_ecdsa_key", ""}, {"/etc/ssh/ssh_host_ed25519_key", ""},
	{"/root/.ssh/", ""}, {"/run/secrets/", ""}, {"/var/run/secrets/", ""},
}

// homePlaces are the known places of homes, in lower case, for [known].
var homePlaces = func() (all []string) {
	for _, p := range Places {
		if !path.IsAbs(p.Path) {
			all = append(all, strings.ToLower(p.Path))
		}
	}
	return all
}()

// known reports whether an absolute path, in lower case, ends with a known place
// of a home, or lies in one.
func known(place string) bool {
	if !path.IsAbs(place) {
		return false
	}
	return slices.ContainsFunc(homePlaces, func(p string) bool {
		if strings.HasSuffix(p, "/") {
			return strings.Contains(place+"/", "/"+p)
		}
		return strings.HasSuffix(place, "/"+p)
	})
}

// Needs reports whether one of the programs needs the place for its work.
func (p Place) Needs(programs []string) bool {
	return slices.ContainsFunc(strings.Fields(p.For), func(name string) bool { return slices.Contains(programs, name) })
}
