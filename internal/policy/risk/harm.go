package risk

import (
	"slices"
	"strings"
	"sync"
)

// harmRows are irreversible actions of well-known programs, or actions that send data to others. A row
// names programs, then the words of such an action: plain words in this order, perhaps with others
// between them; options anywhere. "|" separates alternatives, a star matches the rest of a word, "~"
// matches inside a word. The first matching row decides, so rows that only send data come last.
var harmRows = []struct{ why, rows string }{
	{"destroys or changes running infrastructure", `
		terraform|tofu|terragrunt destroy
		terraform|tofu|terragrunt apply -auto-approve|-destroy
		terraform|tofu|terragrunt state rm|push|mv
		terraform|tofu|terragrunt workspace|stack delete
		terragrunt run-all|run
		pulumi destroy|cancel
		pulumi up|update --yes|-y|--skip-preview|-f
		pulumi stack|state rm|delete
		cdk|cdktf|serverless|sls|sst|copilot|eb destroy|remove|delete|terminate
		kubectl|oc delete|drain
		kubectl|oc replace|apply --force|--prune
		kubectl|oc scale|rollout|patch|cordon|taint|cp
		helm|helmfile uninstall|delete|del|un|destroy
		vagrant|virsh|multipass|lxc|incus|minikube|kind|k3d|eksctl|kops|limactl|colima|nerdctl destroy|undefine|delete|purge
		nomad job|system stop|gc
		docker|podman|nerdctl swarm|stack|service leave|rm|remove
		heroku|fly|flyctl|doctl|linode-cli|hcloud|oci|ibmcloud|vercel|netlify|firebase|wrangler|railway|render|scw|exo delete*|destroy*|remove*|rm|purge*|terminate*|apps:destroy|pg:reset
		heroku|fly|flyctl|vercel|netlify|firebase|wrangler|railway deploy*|publish*
		gcloud|gsutil|bq|az delete*|destroy*|remove*|rm|purge*|terminate*|rb|reset*
		aws delete*|terminate*|remove*|purge*|deregister*|destroy*|stop*|reset*|revoke*|rb|rm|detach*|disable*
		vault|consul|etcdctl delete|destroy|del
		supabase db reset
		vercel --prod
		cf push|delete*
		kafka-topics|kafka-topics.sh|kafka-configs|kafka-configs.sh --delete
		nsupdate
		s5cmd|b2|crictl rm|rmi|delete*|mv
		ctr rm|remove|delete
		service|rc-service|sv|initctl stop|restart|down|disable
		nmcli delete|down|off|modify|disconnect`},
	{"destroys container data", `
		docker|podman|nerdctl system|volume|container|image|network|builder|buildx prune|rm|remove
		docker|podman|nerdctl|docker-compose|podman-compose down -v|--volumes|--rmi
		docker-compose|podman-compose rm
		docker|podman|nerdctl compose rm
		docker|podman|nerdctl rm|rmi -f|-v|--force|--volumes|-a|--all
		docker|podman|nerdctl kill`},
	{"gives a container access to the machine", `
		docker|podman|nerdctl run|create|exec --privileged|--cap-add|--device|--security-opt|--pid|--ipc|--userns|--volumes-from
		docker|podman|nerdctl run|create|exec --network=host|--net=host`},
	{"destroys data in a database", `
		dropdb|dropuser
		psql|mysql|mariadb|sqlite3|sqlcmd|clickhouse*|cqlsh|duckdb|cockroach|usql|pgcli|mycli|bq|isql|snowsql|spark-sql|hive|beeline ~drop |~truncate |~delete from|~alter table
		mysqladmin drop|shutdown
		redis-cli|valkey-cli|keydb-cli flushall|flushdb|shutdown|del|unlink|config|eval*|debug|module
		mongo|mongosh ~dropdatabase|~.drop(|~deletemany|~deleteone|~remove(|~dropcollection
		rabbitmqctl|rabbitmqadmin reset|force_reset|delete*|purge*
		influx delete
		pg_restore|mongorestore -c|--clean|--drop
		drizzle-kit push|drop
		rails|rake|bundle|mix|npx|pnpm|yarn|npm|php db:drop|db:reset|db:purge|db:schema:load|ecto.drop|ecto.reset|migrate:fresh|migrate:reset|migrate:refresh|db:wipe
		prisma|npx|pnpm|yarn migrate reset
		prisma|npx|pnpm|yarn db push --force-reset|--accept-data-loss
		python|python3|django-admin flush|reset_db|sqlflush
		alembic|flask|knex|sequelize|typeorm downgrade|rollback|db:drop|schema:drop|migration:revert`},
	{"destroys backups or file systems", `
		restic|borg|kopia|duplicity forget|prune|delete|remove*
		zfs destroy|rollback
		btrfs subvolume delete
		rsync --delete*|--remove-source-files
		apt|apt-get|aptitude|dnf|yum|pacman|zypper|apk|brew|snap|flatpak remove|purge|autoremove|uninstall|erase|del|-R*`},
	{"deletes or changes what others use", `
		npm|pnpm|yarn|bun|lerna unpublish|deprecate|owner|access|token|dist-tag
		cargo|gem yank|owner
		poetry|uv|flit|hatch|pdm|rye|maturin owner
		dotnet nuget delete
		nuget delete
		vsce|ovsx unpublish
		helm|skopeo|crane|oras delete
		gh repo delete|archive|rename|edit
		gh release|gist delete
		gh secret|variable|ssh-key|gpg-key set|add|delete|remove
		gh pr|issue merge|delete|transfer
		gh workflow|run|cache run|delete|cancel|disable
		gh api -X|--method|-f|-F|--field|--raw-field|--input
		glab api -X|--method
		glab repo|release|variable|mr delete|set|merge|-X|--method`},
	{"installs commands that run later", `
		launchctl load|bootstrap|submit|enable|kickstart|asuser|config|setenv
		update-rc.d|rc-update|sysv-rc-conf|insserv|chkconfig enable|disable|defaults|remove|add|del|delete|on|off|reset
		chkconfig|insserv --add|--del|--level|-r|-d
		brew services start|restart|run
		pm2 startup|save|start
		forever start|install
		supervisorctl add|reread|update|reload
		schtasks /create|-create|/change
		sc|sc.exe create|config
		nssm install|set
		anacron|incrontab|fcrontab`},
	{"changes what programs run", `
		go env -w|-u
		npm|pnpm|yarn config|set set|delete|edit|rm
		npm|pnpm|yarn link
		pip|pip3 config set|unset|edit
		launchctl unload|remove|bootout|disable
		defaults write|delete
		reg add|delete|import
		update-alternatives|alternatives --set|--install|--remove|--config`},
	{publishes, `
		npm|pnpm|yarn|bun|lerna publish
		cargo publish
		twine upload|register
		poetry|uv|flit|hatch|pdm|rye|maturin publish|upload
		python|python3 -m twine|flit upload|publish
		gem push
		mvn|mvnw deploy|release:*
		gradle|gradlew publish*|uploadArchives
		dotnet nuget push
		nuget push
		mix hex.publish
		goreleaser|semantic-release|release-it|changeset release|publish
		semantic-release|release-it
		vsce|ovsx publish
		docker|podman|nerdctl push
		helm|skopeo|crane|oras push|copy
		gh repo create
		gh release|gist create|upload|edit
		gh pr|issue close|create|comment|edit
		glab repo|release|variable|mr create|upload`},
	{sendsData, `
		scp|sftp|ftp|tftp|lftp|rclone|mail|mailx|sendmail|mutt|swaks|msmtp|rcp|uucp|croc|wormhole|transfer|ffsend|wget2|telnet|s3cmd|azcopy|mc
		nc|ncat|netcat|socat|pwncat|cryptcat|websocat|wscat|chisel|ngrok|cloudflared|localtunnel|lt|bore|frpc
		rsh|rexec|mosh|autossh|sshfs|ssh-copy-id|pastebinit|gist|slackcat|telegram-send|ntfy|wall
		tailscale file|funnel|serve|ssh
		gpg|gpg2 --send-keys
		s5cmd|b2 cp|sync|put|pipe|upload*
		python|python3 -m http.server
		openssl s_client|s_server|s_time
		aws s3|s3api cp|sync|mv|put*
		aws put*|send*|publish*|invoke*|import*|upload*
		gcloud|gsutil|az cp|rsync|upload*|ssh|scp|publish
		git send-email|send-pack|daemon|http-push|instaweb
		logger -n|--server`},
}

// A harm is one parsed row.
type harm struct {
	words, options [][]string
	reason         string
}

// harmsByProgram are the rows by program; a program ending in a star matches by prefix.
var harmsByProgram = sync.OnceValue(func() map[string][]harm {
	all := make(map[string][]harm)
	for _, h := range harmRows {
		for row := range strings.Lines(h.rows) {
			fields := strings.Split(strings.TrimSpace(row), " ")
			if fields[0] == "" {
				continue
			}
			one := harm{reason: h.why}
			rest := fields[1:]
			if len(rest) > 0 && strings.HasPrefix(rest[0], "~") { // the content of a word, including spaces
				rest = []string{strings.Join(rest, " ")}
			}
			for _, alternatives := range rest {
				if words := strings.Split(alternatives, "|"); strings.HasPrefix(alternatives, "-") {
					one.options = append(one.options, words)
				} else {
					one.words = append(one.words, words)
				}
			}
			for program := range strings.SplitSeq(fields[0], "|") {
				all[program] = append(all[program], one)
			}
		}
	}
	return all
})

// irreversibleWords are the words that announce by themselves, for any program, something irreversible.
var irreversibleWords = wordList("delete destroy terminate purge wipe drop revoke unpublish publish deploy")

func (h harm) matches(args []arg) bool {
	for _, any := range h.options {
		if !slices.ContainsFunc(args, func(a arg) bool { return isOption(a, any) }) {
			return false
		}
	}
	at := 0
	for _, any := range h.words {
		i := slices.IndexFunc(args[at:], func(a arg) bool {
			text := strings.ToLower(a.text)
			return slices.ContainsFunc(any, func(want string) bool {
				want = strings.ToLower(want)
				if held, ok := strings.CutPrefix(want, "~"); ok {
					return strings.Contains(text, held)
				}
				if strings.HasPrefix(want, "-") {
					return isOption(a, []string{want})
				}
				begin, ok := strings.CutSuffix(want, "*")
				return text == want || ok && strings.HasPrefix(text, begin)
			})
		})
		if i < 0 {
			return false
		}
		at += i + 1
	}
	return true
}

// isOption reports whether a word is one of the options, with any number
// of dashes, with a value, abbreviated, or as a combined letter.
func isOption(a arg, any []string) bool {
	if !a.isOption() {
		return false
	}
	name, _, _ := strings.Cut(strings.TrimLeft(a.text, "-"), "=")
	return slices.ContainsFunc(any, func(option string) bool {
		want := strings.TrimLeft(option, "-")
		switch begin, star := strings.CutSuffix(want, "*"); {
		case star:
			return strings.HasPrefix(name, begin)
		case strings.Contains(want, "="):
			return strings.TrimLeft(a.text, "-") == want
		case len(want) == 1:
			return a.text[1] != '-' && strings.Contains(name, want)
		}
		return name == want || len(name) > 3 && strings.HasPrefix(want, name)
	})
}

// senderHandlers are the programs whose harm depends on more than single words.
var senderHandlers func() map[string]func(*walker, []arg)

func init() { senderHandlers = sync.OnceValue(allSenders) } // these functions refer back to the table

func allSenders() map[string]func(*walker, []arg) {
	posts, copies := approveIf(sendsData, postsMore), approveIf(sendsData, copiesToRemote)
	// a name made of data carries the data to a name server
	lookUp := approveIf(sendsData, func(args []arg) bool { return !allLiteral(args) })
	return map[string]func(*walker, []arg){
		"curl": (*walker).judgeCurl, "wget": (*walker).judgeWget, "http": posts, "https": posts, "xh": posts, "rsync": copies,
		"ssh": approveIf("runs on another machine", func(args []arg) bool {
			return len(args) != 2 ||
				!args[1].isOneOf("-V")
		}),
		"docker": (*walker).judgeMounts, "podman": (*walker).judgeMounts, "nerdctl": (*walker).judgeMounts,
		"dig": lookUp, "nslookup": lookUp, "host": lookUp, "drill": lookUp, "getent": lookUp,
		"ping": lookUp, "ping6": lookUp, "traceroute": lookUp, "whois": lookUp, "resolvectl": lookUp,
		"touch": (*walker).judgeCreate, "mkdir": (*walker).judgeCreate, "mkfifo": (*walker).judgeCreate,
		"sed": (*walker).judgeInPlace, "perl": (*walker).judgeInPlace, "unzip": (*walker).judgeUnpack,
	}
}

// These are the descriptions of sending data.
const (
	connects  = "connects to another machine"
	publishes = "publishes to everyone"
	sendsData = "sends data to another machine"
)

// judgeCurl judges curl, which sends with a body, an upload, an explicit method, or a config file.
func (w *walker) judgeCurl(args []arg) {
	for i, a := range args[1:] {
		name, value, has := strings.Cut(a.text, "=")
		long := strings.HasPrefix(a.text, "--")
		if !has && i+2 < len(args) {
			value = args[i+2].text
		}
		// A variable's value becomes part of an address.
		sends := a.certainty == vague && strings.Contains(a.text, "://") && !isLocalAddress(a.text)
		switch {
		case long && isOption(arg{text: name}, []string{"--data*", "--form*", "--upload-file", "--json", "--config",
			"--mail*", "--quote", "--url-query", "--variable", "--netrc*", "--cookie"}),
			!long && a.isOption() && curlSends(a.text[1:]), strings.HasPrefix(a.text, "@"), strings.HasPrefix(a.text, "<@"):
			sends = true
		case long && isOption(arg{text: name}, []string{"--request"}), a.isOneOf("-X"):
			method := strings.ToUpper(value)
			sends = sends || method != "GET" && method != "HEAD"
		case long && isOption(arg{text: name}, []string{"--header"}), a.isOneOf("-H"):
			sends = sends || strings.HasPrefix(value, "@")
		}
		if sends {
			w.addFinding(Approve, sendsData, joinWords(args))
		}
		if a.isOneOf("-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--trace-ascii", "--stderr",
			"--hsts", "--alt-svc", "--etag-save") && i+2 < len(args) {
			w.judgeWrite(args[i+2], true)
		}
	}
}

// isLocalAddress reports whether an address, of which parts may be unknown, is on this machine.
func isLocalAddress(address string) bool {
	_, rest, _ := strings.Cut(address, "://")
	return !strings.Contains(rest, "@") && slices.ContainsFunc([]string{"localhost", "127.0.0.1", "[::1]"},
		func(host string) bool {
			after, ok := strings.CutPrefix(rest, host)
			return ok && (after == "" || strings.ContainsRune(":/?#", rune(after[0])))
		})
}

// curlSends checks the short options of curl up to the first that takes a value.
func curlSends(letters string) bool {
	for i, c := range letters {
		switch {
		case strings.ContainsRune("dFTKQb", c):
			return true
		case c == 'X':
			method := strings.ToUpper(letters[i+1:])
			return method != "" && method != "GET" && method != "HEAD"
		case c == 'H':
			return strings.HasPrefix(letters[i+1:], "@")
		case strings.ContainsRune("ACDEPUYcehmortuwxyz", c):
			return false
		}
	}
	return false
}

func (w *walker) judgeWget(args []arg) {
	for i, a := range args[1:] {
		if isOption(a, []string{"--post-data", "--post-file", "--body-data", "--body-file", "--method", "--execute",
			"--config", "--use-askpass", "--input-file"}) && strings.HasPrefix(a.text, "--") || a.isOneOf("-e", "-i") {
			w.addFinding(Approve, sendsData, joinWords(args))
		}
		if a.isOneOf("-O", "--output-document", "-o", "--output-file", "-a", "-P") && i+2 < len(args) {
			w.judgeWrite(args[i+2], true)
		}
	}
}

// postsMore reports whether operands follow the address; they are sent.
func postsMore(args []arg) bool {
	operands := dropOptions(args[1:])
	return len(operands) > 1 && !operands[0].isOneOf("GET", "HEAD", "get", "head") || len(operands) > 2
}

// copiesToRemote reports whether an operand is on another machine.
func copiesToRemote(args []arg) bool {
	return slices.ContainsFunc(dropOptions(args[1:]), func(a arg) bool {
		host, _, far := strings.Cut(a.text, ":")
		return far && host != "" && !strings.Contains(host, "/") || strings.HasPrefix(a.text, "rsync://")
	})
}

// judgeMounts judges host folders that a container gets.
func (w *walker) judgeMounts(args []arg) {
	for i, a := range args {
		source, given := "", false
		switch {
		case i > 0 && args[i-1].isOneOf("-v", "--volume", "--mount"):
			source, given = a.text, true
		case strings.HasPrefix(a.text, "--volume="), strings.HasPrefix(a.text, "--mount="):
			_, source, given = strings.Cut(a.text, "=")
		case strings.HasPrefix(a.text, "-v") && len(a.text) > 2:
			source, given = a.text[2:], true
		}
		if !given {
			continue
		}
		for field := range strings.SplitSeq(source, ",") {
			if value, ok := strings.CutPrefix(field, "source="); ok {
				source = value
			} else if value, ok := strings.CutPrefix(field, "src="); ok {
				source = value
			}
		}
		source, _, _ = strings.Cut(source, ":")
		if far := strings.HasPrefix(source, "/") || strings.HasPrefix(source, "~") || strings.Contains(source, ".."); far &&
			slices.ContainsFunc(w.possiblePaths(arg{text: source, hasTilde: true}), w.isOutside) {
			w.addFinding(Approve, "gives a container access to the machine", joinWords(args))
		}
	}
}

func (w *walker) judgeCreate(args []arg) {
	for _, a := range dropOptions(args[1:]) {
		w.judgeDestination(a)
	}
}

// judgeInPlace judges the files that a stream editor changes in place.
func (w *walker) judgeInPlace(args []arg) {
	if slices.ContainsFunc(args[1:], func(a arg) bool {
		return strings.HasPrefix(a.text, "-i") || strings.HasPrefix(a.text, "--in-place") || a.isOption() &&
			a.text[1] != '-' && strings.Contains(a.text, "i")
	}) {
		w.judgeCreate(args)
	}
}

func (w *walker) judgeUnpack(args []arg) {
	if i := indexOf(args, "-d"); i > 0 && i+1 < len(args) {
		w.judgeDestination(args[i+1])
	}
}

// judgeDestination judges a path that a command may change by what it belongs to.
func (w *walker) judgeDestination(a arg) {
	if !a.isExact() {
		return
	}
	for _, p := range w.possiblePaths(a) {
		if what := w.facts.protectedReason(p); what != "" {
			w.report.Writes = append(w.report.Writes, p)
			w.addFinding(Approve, "writes to "+what, p)
		}
	}
}
