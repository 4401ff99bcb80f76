package search

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/message"
)

// fileTypes are short names for kinds of files, with their extensions and names.
var fileTypes = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"bazel":      {".bzl", ".bazel", "BUILD", "WORKSPACE"},
		"bash":       {".sh", ".bash", ".bashrc", ".profile"},
		"c":          {".c", ".h"},
		"cpp":        {".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx", ".h", ".inl"},
		"cs":         {".cs"},
		"css":        {".css", ".scss", ".sass", ".less"},
		"dart":       {".dart"},
		"docker":     {"Dockerfile", ".dockerfile"},
		"elixir":     {".ex", ".exs"},
		"go":         {".go"},
		"haskell":    {".hs", ".lhs"},
		"html":       {".html", ".htm"},
		"java":       {".java"},
		"js":         {".js", ".jsx", ".mjs", ".cjs", ".vue"},
		"json":       {".json", ".jsonl", ".jsonc"},
		"kotlin":     {".kt", ".kts"},
		"lua":        {".lua"},
		"make":       {"Makefile", "makefile", "GNUmakefile", ".mk"},
		"markdown":   {".md", ".markdown", ".mdx"},
		"nix":        {".nix"},
		"ocaml":      {".ml", ".mli"},
		"perl":       {".pl", ".pm"},
		"php":        {".php"},
		"proto":      {".proto"},
		"python":     {".py", ".pyi"},
		"r":          {".r", ".R"},
		"ruby":       {".rb", ".rake", "Rakefile", "Gemfile"},
		"rust":       {".rs"},
		"scala":      {".scala", ".sbt"},
		"sql":        {".sql"},
		"swift":      {".swift"},
		"terraform":  {".tf", ".tfvars"},
		"toml":       {".toml"},
		"typescript": {".ts", ".tsx", ".mts", ".cts"},
		"txt":        {".txt"},
		"xml":        {".xml", ".xsd", ".xsl", ".svg"},
		"yaml":       {".yaml", ".yml"},
		"zig":        {".zig"},
	}
})

// typeAliases are other names of types.
var typeAliases = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"sh": "bash", "shell": "bash", "c++": "cpp", "cxx": "cpp", "csharp": "cs", "golang": "go", "javascript": "js",
		"md": "markdown", "py": "python", "rb": "ruby", "rs": "rust", "ts": "typescript", "yml": "yaml",
		"dockerfile": "docker",
		"makefile":   "make", "tsx": "typescript", "jsx": "js", "vue": "js", "hpp": "cpp", "cc": "cpp", "bzl": "bazel",
		"cjs": "js", "mjs": "js", "kt": "kotlin", "tf": "terraform", "htm": "html", "text": "txt",
	}
})

// fileType has the extensions and names of a type of files; nil means every file.
type fileType []string

func parseType(name string) (fileType, error) {
	if first, rest, several := strings.Cut(name, ","); several {
		k, err := parseType(strings.TrimSpace(first))
		more, other := parseType(strings.TrimSpace(rest))
		return slices.Concat(k, more), cmp.Or(err, other)
	}
	name = strings.ToLower(strings.TrimPrefix(name, "."))
	if other, ok := typeAliases()[name]; ok {
		name = other
	}
	if name == "" {
		return nil, nil
	}
	k, ok := fileTypes()[name]
	if !ok {
		return nil, message.Errorf("unknown type %q; use include with a glob such as *.%s", name, name)
	}
	return k, nil
}

func (k fileType) matches(name string) bool {
	base := path.Base(name)
	return k == nil || slices.Contains(k, base) || slices.Contains(k, path.Ext(base))
}
