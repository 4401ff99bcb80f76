package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"coder/internal/authored/plugin"
	"coder/internal/core/jsonx"
	"coder/internal/host/atomicfile"
	"coder/internal/host/patch"
	"coder/internal/host/repofile"
	"coder/internal/host/worktree"
)

// fetchedPlugins is the folder of plugins that came from an address. It is not ours alone: what
// plugins run must see it.
func (a *Extensions) fetchedPlugins() string { return a.Env.fetchedPlugins() }

func (e Env) fetchedPlugins() string {
	if dir := e.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coder", "plugins")
	}
	if home := e.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", "coder", "plugins")
	}
	return ""
}

var (
	ownerRepoPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w.-]+/[\w.-]+$`) })
	marketNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([\w.-]+)@([\w.-]+)$`) })
)

// parseOrigin reads owner/repo[@ref] or a URL[@ref]; ok is false for a path.
func parseOrigin(text string) (o plugin.Origin, ok bool) {
	at := strings.LastIndexByte(text, '@')
	if name := text[:max(at, 0)]; at > 0 && (ownerRepoPattern().MatchString(name) || strings.Contains(name, "://") &&
		strings.LastIndexByte(name, '/') > strings.Index(name, "://")+2) {
		text, o.Ref = name, text[at+1:]
	}
	switch {
	case strings.Contains(text, "://"), strings.HasPrefix(text, "git@"):
		o.Source = text
	case ownerRepoPattern().MatchString(text) && !strings.HasPrefix(text, "."):
		o.Source = "https://github.com/" + text + ".git"
	}
	return o, o.Source != ""
}

// FindPlugin is the folder of a plugin that is named by a path, an address, or NAME@MARKETPLACE.
// What is not here is fetched, at one commit.
func (a *Extensions) FindPlugin(ctx context.Context, text string) (dir string, o plugin.Origin, err error) {
	dir = text
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.Env.Dir, dir)
	}
	m := marketNamePattern().FindStringSubmatch(text)
	o, ok := parseOrigin(text)
	if _, err := os.Stat(dir); err == nil {
		if (m != nil || ok) && !filepath.IsAbs(text) && !strings.HasPrefix(text, ".") { // the workspace must not choose
			return "", o, inputErrorf("%q is an address, and a folder here: write ./%s for the folder", text, text)
		}
		return dir, plugin.Origin{}, nil
	}
	if m != nil {
		return a.findInMarket(ctx, m[1], m[2])
	}
	if !ok {
		return dir, o, nil // which the book says is missing
	}
	dir, err = a.fetchPlugin(ctx, &o)
	return dir, o, err
}

// fetchPlugin clones what an origin names, and notes the commit. Nothing in it runs.
func (a *Extensions) fetchPlugin(ctx context.Context, o *plugin.Origin) (dir string, err error) {
	dir, err = a.placeFetched(func(clone string) (string, error) {
		if _, o.Commit, err = worktree.Clone(ctx, clone, o.Source, o.Ref, "plugin", a.Launcher()); err != nil {
			return "", inputErrorf("%v", err)
		}
		// all that is left is pinned
		return shortHash(o.Source)[:8] + "-" + o.Commit[:min(12, len(o.Commit))], os.RemoveAll(filepath.Join(clone, ".git"))
	})
	if err != nil {
		return "", err
	}
	return subfolder(dir, o.Sub)
}

// newPluginDir is the name of a folder that is being fetched. The next fetch removes what a kill left of one.
const newPluginDir = ".new"

// placeFetched has fill create a folder and name it, and gives it that name among the fetched ones. A folder of the
// name with the same content is used instead; one that the user changed stays, and the new one gets another name.
func (a *Extensions) placeFetched(fill func(dir string) (name string, err error)) (dir string, err error) {
	base := a.fetchedPlugins()
	if base == "" {
		return "", inputErrorf("no folder for plugins: set HOME")
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", err
	}
	release, err := atomicfile.Lock(base)
	if err != nil {
		return "", err
	}
	defer release()
	fresh := filepath.Join(base, newPluginDir)
	defer os.RemoveAll(fresh)
	if err := os.RemoveAll(fresh); err != nil { // what a killed process left
		return "", err
	}
	name, err := fill(fresh)
	if err != nil {
		return "", err
	}
	if dir = filepath.Join(base, name); plugin.SameContent(fresh, dir) {
		return dir, nil
	}
	if dir, err = worktree.UnusedName(base, name); err != nil {
		return "", err
	}
	return dir, os.Rename(fresh, dir)
}

// UpdatePlugin fetches a plugin from where it came, as that is now.
func (a *Extensions) UpdatePlugin(ctx context.Context, from plugin.Origin) (dir string, o plugin.Origin, err error) {
	o = from
	dir, err = a.fetchPlugin(ctx, &o)
	return dir, o, err
}

// subfolder is a folder inside another, which it does not lead out of.
func subfolder(dir, sub string) (string, error) {
	if sub == "" {
		return dir, nil
	}
	if !filepath.IsLocal(sub) {
		return "", inputErrorf("%q leads outside the folder", sub)
	}
	if _, err := repofile.NewRoot(dir).Stat(sub); err != nil {
		return "", inputErrorf("%s: %s", sub, repofile.Reason(err))
	}
	return filepath.Join(dir, sub), nil
}

// RemoveFetchedPlugin removes the folder of a plugin that was fetched, unless another plugin is in it. Other
// folders stay.
func (a *Extensions) RemoveFetchedPlugin(dir string) error {
	base := a.fetchedPlugins()
	rel, err := filepath.Rel(base, dir)
	if base == "" || err != nil || !filepath.IsLocal(rel) || rel == "." {
		return nil
	}
	top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	unused, err := a.UnusedPluginDirs()
	if at := filepath.Join(base, top); slices.Contains(unused, at) {
		return os.RemoveAll(at)
	}
	return err
}

// UnusedPluginDirs returns the fetched folders of which no plugin and no marketplace is added.
func (a *Extensions) UnusedPluginDirs() (dirs []string, err error) {
	all, _ := fs.ReadDir(repofile.OwnDir(a.fetchedPlugins()), ".") // the folder may be missing
	if len(all) == 0 {
		return nil, nil
	}
	added, err := a.PluginBook().Load()
	markets, bad := a.LoadMarkets()
	if err = errors.Join(err, bad); err != nil {
		return nil, err
	}
	var used []string
	for _, p := range added {
		used = append(used, p.Dir+"/")
	}
	for _, m := range markets {
		used = append(used, m.Dir+"/")
	}
	for _, f := range all {
		if f.Name() == newPluginDir { // another process may be filling it
			continue
		}
		at := filepath.Join(a.fetchedPlugins(), f.Name())
		if !slices.ContainsFunc(used, func(dir string) bool { return strings.HasPrefix(dir, at+"/") }) {
			dirs = append(dirs, at)
		}
	}
	return dirs, nil
}

// Market is a marketplace: a repository that lists plugins.
type Market struct {
	plugin.Origin
	Dir string `json:"dir"`
}

const marketsFile = "marketplaces.json"

// LoadMarkets are the marketplaces that the person added, by name.
func (a *Extensions) LoadMarkets() (map[string]Market, error) {
	all := make(map[string]Market)
	text, err := repofile.ReadOwn(filepath.Join(a.Home, marketsFile), maxUserFile)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// AddMarket adds a marketplace from an address or a path, or fetches it again. Only with replace does it
// take the name of another one.
func (a *Extensions) AddMarket(ctx context.Context, text string, replace bool) (name string, offers []plugin.Offer,
	err error) {
	dir, o, err := a.FindPlugin(ctx, text)
	if err != nil {
		return "", nil, err
	}
	if name, offers, err = plugin.ReadMarket(dir); err != nil {
		return "", nil, inputErrorf("%v", err)
	}
	var was Market
	err = atomicfile.Update(filepath.Join(a.Home, marketsFile), 0o600, func() ([]byte, error) {
		all, err := a.LoadMarkets()
		if err != nil {
			return nil, err
		}
		var known bool
		was, known = all[name]
		if before, now := cmp.Or(was.Source, was.Dir), cmp.Or(o.Source, dir); known && before != now && !replace {
			return nil, inputErrorf("the marketplace %s is at %s; --yes replaces it with %s", name, singleLine(before),
				singleLine(now))
		}
		all[name] = Market{o, dir}
		return jsonx.MustMarshal(all), nil
	})
	if err != nil {
		return "", nil, errors.Join(a.RemoveFetchedPlugin(dir), err)
	}
	if was.Dir != dir {
		err = a.RemoveFetchedPlugin(was.Dir)
	}
	return name, offers, err
}

// MarketOffers are what the marketplaces list, as NAME@MARKETPLACE. A marketplace that cannot be read
// is a problem.
func (a *Extensions) MarketOffers() (offers []plugin.Offer, problems []string) {
	all, err := a.LoadMarkets()
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		_, list, err := plugin.ReadMarket(all[name].Dir)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", name, err))
		}
		for _, o := range list {
			o.Name += "@" + name
			offers = append(offers, o)
		}
	}
	return offers, problems
}

// findInMarket finds a plugin that a marketplace lists.
func (a *Extensions) findInMarket(ctx context.Context, name, market string) (dir string, o plugin.Origin, err error) {
	all, err := a.LoadMarkets()
	m, ok := all[market]
	if err != nil || !ok {
		return "", o, cmp.Or(err, inputErrorf("unknown marketplace %q; coder plugin marketplace list shows them", market))
	}
	_, offers, err := plugin.ReadMarket(m.Dir)
	i := slices.IndexFunc(offers, func(o plugin.Offer) bool { return o.Name == name })
	switch {
	case err != nil:
		return "", o, inputErrorf("%v", err)
	case i < 0:
		return "", o, inputErrorf("the marketplace %s has no plugin %q; coder plugin marketplace search finds them",
			market, name)
	case offers[i].UnsupportedKind != "":
		return "", o, inputErrorf("%s comes from %s, which coder cannot fetch", name, offers[i].UnsupportedKind)
	}
	switch o = offers[i].From; {
	case o.Source != "":
		if found, ok := parseOrigin(o.Source); ok {
			o.Source = found.Source
		}
		dir, err = a.fetchPlugin(ctx, &o)
	default:
		o.Source, o.Ref, o.Commit = m.Source, m.Ref, m.Commit
		dir, err = subfolder(m.Dir, o.Sub)
	}
	if err != nil || offers[i].HasManifest(dir) {
		return dir, o, err
	}
	bare := dir
	dir, err = a.placeFetched(func(to string) (string, error) {
		return shortHash(bare)[:16] + "-" + name, offers[i].Furnish(bare, to)
	})
	return dir, o, errors.Join(err, a.RemoveFetchedPlugin(bare))
}

// maxUpdateDiff bounds what is shown of an update.
const maxUpdateDiff = 64 << 10

// DiffFolders is the difference between what two folders of a plugin hold.
func DiffFolders(old, now string) string {
	names := make(map[string]bool)
	for _, dir := range []string{old, now} {
		_ = fs.WalkDir(repofile.NewRoot(dir), ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				names[name] = true
			}
			return nil // what cannot be read is refused when the plugin is
		})
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, _ := repofile.NewRoot(old).Read(name, maxUpdateDiff)
		is, _ := repofile.NewRoot(now).Read(name, maxUpdateDiff)
		text, _, _ := patch.Unified(name, was, is)
		if b.WriteString(text); b.Len() > maxUpdateDiff {
			return b.String()[:maxUpdateDiff] + "\n[cut]\n"
		}
	}
	return b.String()
}
