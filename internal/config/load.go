package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"coder/internal/core/message"
	"coder/internal/host/repofile"

	"github.com/tailscale/hujson"
)

// Options say where to find settings. The zero Options find none, so the defaults apply.
type Options struct {
	Home         string // folder with the user's own file
	Project      string // the workspace, with its file in the folder .coder
	ExtraFile    string // a file from the user, which must exist; otherwise CODER_CONFIG may name one
	Getenv       func(string) string
	ReadFile     func(string) ([]byte, error) // nil reads the real files
	Flags        []Override
	TrustProject bool
	Managed      string // folder of the managed settings; "" means [ManagedDir]. Tests name another
}

// Override is a setting from the command line.
type Override struct {
	Key   string // with dots
	Value any    // of the setting's type, or as text
	Name  string // the flag for messages: --model
}

// fileName is the name of the user's and the project's settings files.
const fileName = "config.json"

// Load combines the layers. After an error, the Config is [Default], only for reporting the error.
func Load(o Options) (Config, Report, error) {
	l := newLoader(o)
	for _, f := range o.files() {
		l.loadFile(f)
	}
	done := map[string]bool{}
	for _, v := range envVars {
		value := l.getenv(v.name)
		if value == "" || done[v.key] {
			continue
		}
		done[v.key] = true
		y := layer{loader: l, name: "env " + v.name}
		if v.name == "CODER_PROVIDER" && slices.Contains(l.root.childByName["provider"].childByName["kind"].enum(), value) {
			y.setOverride("provider.kind", value)
			continue
		}
		y.setOverride(v.key, value)
	}
	for _, o := range o.Flags {
		y := layer{loader: l, name: o.Name}
		y.setOverride(o.Key, o.Value)
	}
	l.applyManaged(cmp.Or(o.Managed, ManagedDir))
	if len(l.errs) > 0 {
		l.cfg = Default()
		return l.cfg, l.report, errors.Join(l.errs...)
	}
	l.chooseEndpoint()
	l.report.cfg = l.cfg
	return l.cfg, l.report, nil
}

// Files lists the files that Load would read, the weakest first.
func (o Options) Files() []string {
	var names []string
	for _, f := range o.files() {
		names = append(names, f.path)
	}
	return names
}

// file is a settings file with its trust.
type file struct {
	path      string
	required  bool // the file must exist
	project   bool
	untrusted bool
}

func (o Options) files() []file {
	var files []file
	if o.Home != "" {
		files = append(files, file{path: filepath.Join(o.Home, fileName)})
	}
	if o.Project != "" {
		p := file{path: filepath.Join(o.Project, ".coder", fileName), project: true, untrusted: !o.TrustProject}
		if len(files) == 0 || !isSameFile(files[0].path, p.path) { // in the home folder, both are one file, which is trusted
			files = append(files, p)
		}
	}
	named := o.ExtraFile
	if named == "" && o.Getenv != nil {
		named = o.Getenv("CODER_CONFIG")
	}
	if named != "" {
		files = append(files, file{path: named, required: true})
	}
	return files
}

// isSameFile reports whether two paths lead to the same file.
func isSameFile(a, b string) bool {
	if a == b {
		return true
	}
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// maxErrors limits the number of errors that one Load reports.
const maxErrors = 20

// loader has the settings loaded so far.
type loader struct {
	cfg            Config
	root           *field
	report         Report
	errs           []error
	getenv         func(string) string
	readFile       func(string) ([]byte, error)
	profiles       map[string][]profileLayer // by name, the weakest first
	projectServers map[string]bool           // MCP servers from the project
}

func newLoader(o Options) *loader {
	l := &loader{
		cfg:            Default(),
		root:           rootField(),
		report:         Report{origins: map[string]Origin{}, locks: map[string]managedLimit{}},
		getenv:         o.Getenv,
		readFile:       o.ReadFile,
		profiles:       map[string][]profileLayer{},
		projectServers: map[string]bool{},
	}
	if l.getenv == nil {
		l.getenv = func(string) string { return "" }
	}
	return l
}

func (l *loader) addError(err error) {
	if len(l.errs) < maxErrors {
		l.errs = append(l.errs, err)
	}
}

func (l *loader) loadFile(f file) {
	var data []byte
	var err error
	switch dir, name := filepath.Split(f.path); {
	case l.readFile != nil:
		data, err = l.readFile(f.path)
	case f.project: // a project's files are not the user's own
		data, err = repofile.NewRoot(filepath.Dir(filepath.Clean(dir))).Read(filepath.Join(filepath.Base(dir), name),
			maxFileBytes)
	case f.required:
		data, err = repofile.ReadNamed(f.path, maxFileBytes)
	default:
		data, err = repofile.ReadOwn(f.path, maxFileBytes)
	}
	if (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && !f.required {
		return
	}
	if f.project && repofile.IsRefused(err) {
		l.report.Warnings = append(l.report.Warnings, Warning{Origin: Origin{Source: f.path},
			Text: "ignored: " + repofile.Reason(err)})
		return
	}
	if err != nil {
		l.addError(message.Errorf("read settings: %w", err))
		return
	}
	src, err := parseConfig(f.path, data)
	if err == nil {
		err = src.checkFormat()
	}
	if err != nil {
		l.addError(err)
		return
	}
	l.report.Files = append(l.report.Files, f.path)
	y := layer{loader: l, name: f.path, source: src, project: f.project, untrusted: f.untrusted,
		minRank: l.strictestRank()}
	y.applyObject(l.root, src.root)
	y.useProfile()
}

// layer is one source of settings, applied to the earlier ones.
type layer struct {
	*loader
	name         string
	source       *source // nil for a variable or a flag
	project      bool
	untrusted    bool
	minRank      int  // rank of the strictest verdict in earlier layers
	choseProfile bool // whether it chose a profile
	// isWithheld, which may be nil, reports whether this layer must not use a variable.
	isWithheld func(name string) bool
}

// setOverride sets one key.
func (y *layer) setOverride(key string, value any) {
	if s, ok := value.(string); ok && key == "provider.preset" && isAddress(s) { // an endpoint without a preset
		y.resetEndpoint()
		key = "provider.base_url"
	}
	f, words, ok := y.root.find(key)
	if !ok {
		y.addErrorAt(0, key, unknownKeyMessage(y.root, f, words, key))
		return
	}
	v, err := toLiteral(f, words, value)
	if err != nil {
		y.addErrorAt(0, key, key+": "+err.Error())
		return
	}
	y.applyAt(key, v)
	y.useProfile()
}

// applyAt applies v to the value at key.
func (y *layer) applyAt(key string, v hujson.Value) {
	for _, word := range slices.Backward(splitKey(key)) {
		v = hujson.Value{Value: &hujson.Object{Members: []hujson.ObjectMember{{
			Name:  hujson.Value{Value: hujson.String(word)},
			Value: v,
		}}}}
	}
	y.applyObject(y.root, v)
}

// toLiteral returns value as a file would contain it. Text is parsed, unless the setting is itself text.
func toLiteral(f *field, words []string, value any) (hujson.Value, error) {
	s, isText := value.(string)
	switch {
	case !isText:
		data, err := json.Marshal(value)
		if err != nil {
			return hujson.Value{}, err
		}
		return hujson.Parse(data)
	case f.kind == kindText, f.kind == kindCommand, len(words) > 0 && f.kind != kindJSONMap, f.kind == kindRules:
		return hujson.Value{Value: hujson.String(s)}, nil
	case f.kind == kindTextList, f.kind == kindNetwork && s != "true" && s != "false":
		list := &hujson.Array{}
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list.Elements = append(list.Elements, hujson.Value{Value: hujson.String(item)})
			}
		}
		return hujson.Value{Value: list}, nil
	case f.kind == kindBool, f.kind == kindNetwork, f.kind == kindInt, f.kind == kindFloat:
		if lit := hujson.Literal(s); lit.IsValid() {
			return hujson.Value{Value: lit}, nil
		}
		return hujson.Value{}, message.Errorf("expected %s, found %q", f.describeValues(), shorten(s))
	}
	if findTooDeep([]byte(s)) >= 0 {
		return hujson.Value{}, errors.New("nested too deep")
	}
	return hujson.Parse([]byte(s))
}

func unknownKeyMessage(root, f *field, words []string, key string) string {
	name := ""
	if len(words) > 0 {
		name = words[0]
	}
	return fmt.Sprintf("unknown key %q%s", shorten(key), root.suggestKey(f, name))
}

// addErrorAt records an error at offset.
func (y *layer) addErrorAt(offset int, key, what string) {
	if y.source == nil {
		y.addError(&Error{Source: y.name, Key: key, Text: what})
		return
	}
	y.addError(y.source.errorAt(offset, key, what))
}

// addWarning records an ignored setting.
func (y *layer) addWarning(offset int, key, why string) {
	if len(y.report.Warnings) >= maxWarnings {
		return
	}
	w := Warning{Origin: y.originAt(offset), Key: key, Text: "ignored in an untrusted project: " + key}
	if why != "" {
		w.Text += " (" + why + ")"
	}
	y.report.Warnings = append(y.report.Warnings, w)
}

func (y *layer) originAt(offset int) Origin {
	o := Origin{Source: y.name, Project: y.project}
	if y.source != nil {
		o.Line = y.source.lineAt(offset)
	}
	return o
}

// recordOrigin records the origin of key's value.
func (y *layer) recordOrigin(offset int, key string) {
	y.report.origins[key] = y.originAt(offset)
}
