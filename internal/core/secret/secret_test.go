package secret

import "testing"

func TestSecretsAreKnownByTheirNames(t *testing.T) {
	for file, want := range map[string]bool{
		".env": true, "sub/.ENV": true, ".env.local": true, "prod.env": true, "./a/../.env": true,
		"/home/u/.ssh/id_rsa": true, ".ssh/known_hosts": true, "deploy/server.pem": true, ".aws/credentials": true, "x/.aws/config": true,
		"/home/u/.coder/config.json": true, "sub/.coder/config.json": true, "/proc/self/environ": true, "/proc/1/environ": true, "/etc/shadow": true,
		"/proc/self/root/etc/shadow": true, "/proc/1/root/proc/self/root/home/u/.netrc": true, "/proc/self/task/12/root/etc/shadow": true,
		"/home/u/.codex/auth.json": true, "/home/u/.claude/.credentials.json": true, "/home/u/.bash_history": true, "/home/u/.cargo/credentials.toml": true,
		"/home/u/.config/git/credentials": true, "/home/u/.vault-token": true, "/home/u/.local/share/keyrings/login.keyring": true, "/home/u/.m2/settings.xml": true,
		"/home/u/.config/rclone/rclone.conf": true, "/home/u/.mozilla/firefox/x/logins.json": true, "/home/u/.gemini/oauth_creds.json": true, "/home/u/.config/gh": true,

		".env~": true, "#.env#": true, ".#.env": true, ".env.swp": true, ".id_rsa.swp": true, "id_rsa.bak": true, "certs/server.key.old": true, "credentials.json~": true, "ID_RSA.ORIG": true,

		"sub/.dev.vars": true, ".flaskenv": true, "secrets.json": true, "secrets.toml": true, "x/.streamlit/secrets.toml": true, "k8s/secret.yaml": true, "serviceAccountKey.json": true,
		"firebase-adminsdk-x1.json": true, "client_secret_1.apps.json": true, "AuthKey_1.p8": true, "home.ovpn": true, "wg0.conf": true, "terraform.tfstate": true, "kubeconfig": true, "api_key.txt": true,
		".vault_pass.txt": true, "deploy_rsa": true, "local.settings.json": true, "appsettings.Production.json": true, "web/playwright/.auth/user.json": true, "android/key.properties": true,
		"secring.gpg": true, ".dockercfg": true, ".s3cfg": true, "terraform.tfstate.backup": true, "app-firebase-adminsdk-1.json": true, "prod.kubeconfig": true, ".secrets.toml": true, "env/.env_prod": true,

		"http.keytab": true, "ssh_host_ed25519_key": true, "private.asc": true, "deploy_key": true, "jwt_secret": true, "ios/Secrets.xcconfig": true, "values-secret.yaml": true,
		"new_user_credentials.csv": true, "aws-credentials.csv": true, "openai_api_key.txt": true, "github_token.txt": true, "GITHUB_TOKEN": true, "storage-state.json": true,
		"dev.postman_environment.json": true, "env.production": true, "home/.vnc/passwd": true, "office.rdp": true, "token.txt": true, "tokens.txt": false, "local_settings.py": false,

		"/home/u/.pub-cache/pub-tokens.json": true, "/home/u/.julia/servers/x/auth.toml": true, "/home/u/.foundry/keystores/x": true, "/home/u/.sbt/1.0/credentials.sbt": true,
		"/home/u/.cabal/config": true, "/home/u/.gradle/init.d/x.gradle": true, "/home/u/.cache/huggingface/stored_tokens": true, "/home/u/.local/share/uv/credentials/x.toml": true,

		"chart/templates/secret.yaml": false, "mytemplates/secret.yaml": true, "appsettings.json": false, "appsettings.Development.json": false, ".env-example": false, "secrets.go": false, "secrets.py": false,
		"token.go": false, "rsa.go": false, "google-services.json": false, "package.json": false, "secrets.enc.yaml": false, "client_secret.go": false, "auth.json": false,

		"/home/u/.supabase/access-token": true, "/home/u/.config/ngrok/ngrok.yml": true, "/home/u/.cloudflared/a.json": true, "/home/u/.authinfo": true, "/home/u/.config/stripe/config.toml": true,
		"/home/u/.cursor/mcp.json": true, "/home/u/.local/share/crush/crush.json": true, "/home/u/.config/Bitwarden CLI/data.json": true, "/home/u/.local/share/python_history": true,

		"/work/other/.coder/log/s1/events.jsonl": true, "/w/.coder/undo/objects/aa/b": true, "/w/.coder/runs": true, "/w/.coder/plans/p.md": false,
		".coder/log/s1/events.jsonl": false, "../other/.coder/log/s1/events.jsonl": true, "../../other/.coder/undo/objects/aa/b": true, "../.config/stripe/config.toml": true,

		"main.go~": false, "notes.bak": false, "#a#": false, "~": false, ".swp": false, "id_rsa.pub~": false,
		".coder/config.json": false, ".env.example": false, "id_rsa.pub": false, "README.md": false, "environment.go": false,
		"aws/config": false, "etc/shadow": false, "": false, "/home/u/.cargo/config.toml": false, "src/.mozilla/x": false, "/proc/self/rootkit": false,
	} {
		if got := IsSecretFile(file); got != want {
			t.Errorf("%q: %v", file, got)
		}
	}
}

func TestWhatAWorkspaceHides(t *testing.T) {
	for file, want := range map[string]bool{
		".env": true, "a/b/.env.production": true, "certs/server.key": true, "id_rsa": true, "conf/.npmrc": true, "infra/prod.tfvars": true,
		".env~": true, "conf/.npmrc.bak": true, ".server.pem.swp": true, "main.go~": false,
		".env.example": false, "testdata/server.key": false, "pkg/tests/fixtures/ca.pem": false, "tests/.env": true, "node_modules/x/test.pem": false, "main.go": false,
	} {
		if got := IsHiddenInTree(file, false); got != want {
			t.Errorf("%q: %v", file, got)
		}
	}
	for dir, want := range map[string]bool{".env": false, ".ssh": true, "x/.gnupg": true, "src": false} {
		if got := IsHiddenInTree(dir, true); got != want {
			t.Errorf("folder %q: %v", dir, got)
		}
	}
	if !IsPublic("ca.pem", []byte("-----BEGIN CERTIFICATE-----\n")) || IsPublic("x.pem", []byte("-----BEGIN EC PRIVATE KEY-----")) || IsPublic(".env", []byte("-----BEGIN CERTIFICATE-----\n")) {
		t.Error("certificates are not told from keys")
	}
}

func TestVariablesThatHoldKeys(t *testing.T) {
	for kv, want := range map[[2]string]bool{
		{"OPENAI_API_KEY", "x"}: true, {"GITHUB_TOKEN", "x"}: true, {"MY_SECRET", "x"}: true, {"DB_PASSWORD", "x"}: true, {"githubToken", "x"}: true,
		{"AWS_ACCESS_KEY_ID", "x"}: true, {"AWS_SESSION_TOKEN", "x"}: true, {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "x"}: true, {"API_KEY_2", "x"}: true,
		{"GOOGLE_APPLICATION_CREDENTIALS", "/x.json"}: true, {"NPM_AUTH", "x"}: true, {"SENTRY_DSN", "https://k@o.io/1"}: true, {"TOKEN_FOR_CI", "x"}: true,
		{"DATABASE_URL", "postgres://u:pw@db/x"}: true, {"X", "sk-proj-abcdefghijkl"}: true, {"Y", "ghp_0123456789abcdef"}: true, {"Z", "eyJhbGci.eyJzdWIi.sig-nature"}: true,
		{"HTTPS_PROXY", "http://u:pw@proxy:3128"}: true, {"npm_config__authToken", "x"}: true, {"PGPASSWORD", "x"}: true, {"MYSQL_PWD", "x"}: true,
		{"OTEL_EXPORTER_OTLP_HEADERS", "x=y"}: true, {"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x=y"}: true, {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"}: false, {"CORS_HEADERS", "x"}: false,

		{"CONNECTION_STRING", "Server=db;Database=x;Password=hunter2"}: true, {"SLACK_WEBHOOK_URL", "https://hooks.example.org/x"}: true, {"DISCORD_WEBHOOK", "https://d.example.org/api"}: true,
		{"MNEMONIC", "legal winner thank year"}: true, {"WALLET_SEED", "legal winner"}: true, {"TOTP_SEED", "JBSWY3DPEHPK3PXP"}: true, {"OTP", "123456"}: true, {"SERVICE_ACCOUNT_JSON", "{}"}: true,
		{"FIREBASE_CONFIG", "{}"}: true, {"OP_SESSION_my", "x"}: true, {"CREDS", "x"}: true, {"GCP_CRED", "x"}: true, {"SAS", "sv=2024&sp=r&sig=abcdefgh"}: true, {"D", "dp.st.dev.abcdefghijklmnop"}: true,
		{"PRIVATE_KEY_PEM", "x"}: true, {"API_KEY_PROD", "x"}: true, {"PG", "host=db user=u password=hunter2"}: true, {"SA", `{"type":"x","private_key":"y"}`}: true, {"RECOVERY_CODES", "1 2 3"}: true,
		{"JAVA_OPTS", "-Djavax.net.ssl.trustStorePassword=changeit"}: false, {"RANDOM_SEED", "42"}: false, {"WEBHOOK_PORT", "8080"}: false, {"OTP_VERSION", "26"}: false, {"PYTHONHASHSEED", "0"}: false, {"CONNECTION_STRING", "Server=db;Trusted=yes"}: false,
		{"CFLAGS", "-O2 -Dsig=x"}: false, {"QUERY", "a=1&b=2"}: false,

		{"PATH", "/bin"}: false, {"CONFIG", "eyJhIjoxLCJiIjoyfQ"}: false, {"HOME", "/root"}: false, {"PWD", "/w"}: false, {"OLDPWD", "/w"}: false, {"SSH_AUTH_SOCK", "/tmp/s"}: false, {"KEYTIMEOUT", "1"}: false,
		{"AWS_REGION", "eu"}: false, {"LDAP_BINDPW", "hunter2x"}: true, {"APP_PEPPER", "hunter2x"}: true, {"DATABASE_URL", "postgres://localhost/x"}: false, {"GIT_ASKPASS", "true"}: false, {"LANG", "C"}: false, {"API_KEY", ""}: false,
		{"MONKEY", "x"}: false, {"XDG_SESSION_ID", "3"}: false, {"HTTP_PROXY", "http://proxy:3128"}: false, {"TOKENIZERS_PARALLELISM", "false"}: false, {"COLORTERM", "truecolor"}: false,
	} {
		if got := IsSecretVariable(kv[0], kv[1]); got != want {
			t.Errorf("%s=%s: %v", kv[0], kv[1], got)
		}
	}
}
