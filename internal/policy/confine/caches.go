package confine

import "path/filepath"

// cache is where a tool keeps what it can make again. Nothing in it is run or
// obeyed by itself: programs, settings, start-up files and hooks of the same
// tool lie beside it and stay read-only.
type cache struct {
	env  string   // the variable that says where; may be empty
	home string   // else from the home
	subs []string // only these below it; all of it if there are none
}

// caches are those of common tools.
var caches = []cache{
	{env: "GOCACHE", home: ".cache/go-build"}, {env: "GOMODCACHE", home: "go/pkg/mod"}, {env: "GOPATH", home: "go", subs: []string{"pkg/mod", "pkg/sumdb"}},
	{env: "GOLANGCI_LINT_CACHE", home: ".cache/golangci-lint"}, {env: "STATICCHECK_CACHE", home: ".cache/staticcheck"}, {home: ".cache/gopls"}, {home: ".cache/goimports"},
	{env: "CARGO_HOME", home: ".cargo", subs: []string{"registry", "git"}}, {env: "SCCACHE_DIR", home: ".cache/sccache"}, {env: "CCACHE_DIR", home: ".cache/ccache"}, {home: ".ccache"},
	{env: "npm_config_cache", home: ".npm", subs: []string{"_cacache", "_logs"}}, {home: ".pnpm-store"}, {home: ".local/share/pnpm/store"}, {home: ".cache/pnpm"},
	{env: "YARN_CACHE_FOLDER", home: ".cache/yarn"}, {home: ".yarn/berry/cache"}, {home: ".bun/install/cache"}, {env: "DENO_DIR", home: ".cache/deno"},
	{home: ".cache/node-gyp"}, {home: ".cache/typescript"}, {home: ".cache/turbo"}, {home: ".cache/electron"},
	{env: "PIP_CACHE_DIR", home: ".cache/pip"}, {env: "UV_CACHE_DIR", home: ".cache/uv"}, {home: ".cache/pypoetry/cache"}, {home: ".cache/pypoetry/artifacts"},
	{home: ".cache/pylint"}, {home: ".cache/black"}, {home: ".cache/mypy"}, {home: ".cache/ruff"}, {home: ".cache/matplotlib"}, {home: ".cache/fontconfig"},
	{home: ".cache/huggingface/hub"}, {home: ".cache/huggingface/datasets"}, {home: ".cache/torch/hub/checkpoints"}, {home: ".cache/jedi"}, {home: ".cache/parso"},
	{home: ".m2/repository"}, {env: "GRADLE_USER_HOME", home: ".gradle", subs: []string{"caches", "daemon", "native", "notifications", "workers", ".tmp"}},
	{home: ".ivy2/cache"}, {home: ".cache/coursier/v1"}, {home: ".cache/bazel"}, {home: ".cache/zig"}, {home: ".cache/clangd"}, {home: ".cache/composer"},
	{home: ".nuget/packages"}, {home: ".local/share/NuGet"}, {home: ".pub-cache/hosted"}, {home: ".cache/rubocop_cache"}, {home: ".cache/nix"}, {home: ".stack/pantry"},
	{home: ".cabal/packages"}, {home: ".cache/cabal/packages"}, {home: ".hex/packages"}, {home: ".cache/rebar3"}, {home: ".cache/julia"}, {home: ".cache/swift-build"},
	{home: "Library/Caches/go-build"}, {home: "Library/Caches/pip"}, {home: "Library/Caches/Yarn"}, {home: "Library/Caches/deno"}, {home: "Library/Caches/golangci-lint"},
}

// inCache is the folder of caches that another variable may move.
const inCache = ".cache"

// Caches are the folders of common tools that commands may write to.
func Caches(home string, getenv func(string) string) (all []string) {
	base := getenv("XDG_CACHE_HOME")
	for _, c := range caches {
		dir := ""
		if c.env != "" {
			dir = getenv(c.env)
		}
		rel, err := filepath.Rel(inCache, c.home)
		switch {
		case dir != "":
		case base != "" && err == nil && filepath.IsLocal(rel):
			dir = filepath.Join(base, rel)
		case home != "":
			dir = filepath.Join(home, c.home)
		default:
			continue
		}
		if len(c.subs) == 0 {
			all = append(all, dir)
		}
		for _, sub := range c.subs {
			all = append(all, filepath.Join(dir, sub))
		}
	}
	return all
}
