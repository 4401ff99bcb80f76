package codeindex

import (
	"path"
	"strings"
	"sync"
)

// Kind is the sort of a section.
type Kind string

// The kinds of section.
const (
	Function Kind = "function"
	Method   Kind = "method"
	Type     Kind = "type"
	Module   Kind = "module"
	Value    Kind = "value"
	Heading  Kind = "heading"
	Text     Kind = "text"
)

// language is how declarations look in a language, as far as one can tell line
// by line.
type language struct {
	endings   string    // of the names of its files
	declares  string    // kinds, and the words that introduce a name of each
	decorates string    // words that may stand before those
	line      []string  // begins a comment that ends with the line
	block     [2]string // around a comment of several lines
	quotes    []string  // around a text of several lines
	traits    trait

	keywords  map[string]Kind
	modifiers map[string]bool
	special   [256]bool // bytes that may begin a comment or a text
}

// trait is a habit of a language.
type trait uint8

const (
	// calls: a function may have no keyword, only a name, parentheses and a
	// body. Below the top level a brace must end the line.
	calls trait = 1 << iota
	// lowBrace: the brace before a body may stand on a line of its own.
	lowBrace
	// topOnly: what is indented declares nothing.
	topOnly
	// groups: a keyword may stand before several names in parentheses, and a
	// function's name after that of its receiver in such.
	groups
	// arrows: a value may be a function.
	arrows
	// escapes: a backslash keeps a quote from ending a text of several lines.
	escapes
	// tags: the word for a type may also stand before its name where it is used.
	tags
	// extends: a function's name may follow that of the type it extends.
	extends
)

func (l *language) has(t trait) bool { return l.traits&t != 0 }

var (
	slashes  = []string{"//"}
	sharps   = []string{"#"}
	stars    = [2]string{"/*", "*/"}
	backtick = []string{"`"}
	triple   = []string{`"""`}
)

var table = []language{{
	endings: "go", line: slashes, block: stars, quotes: backtick, traits: topOnly | groups,
	declares: "function:func type:type value:var,const",
}, {
	endings: "py pyi", line: sharps, quotes: []string{`"""`, `'''`},
	declares:  "function:def type:class",
	decorates: "async",
}, {
	endings: "js jsx mjs cjs ts tsx mts cts vue svelte", line: slashes, block: stars, quotes: backtick, traits: calls | arrows | escapes,
	declares:  "function:function type:class,interface,enum,type module:namespace,module value:const,let,var",
	decorates: "export default async declare abstract public private protected static readonly override get set",
}, {
	endings: "rs", line: slashes, block: stars,
	declares:  "function:fn,macro_rules type:struct,enum,trait,union,type,impl module:mod value:const,static",
	decorates: "pub async unsafe extern default crate",
}, {
	endings: "java groovy", line: slashes, block: stars, quotes: triple, traits: calls | lowBrace,
	declares:  "type:class,interface,enum,record,@interface",
	decorates: "public private protected static final abstract sealed non-sealed strictfp default synchronized native",
}, {
	endings: "cs", line: slashes, block: stars, traits: calls | lowBrace,
	declares:  "type:class,interface,enum,record,struct,delegate module:namespace",
	decorates: "public private protected internal static sealed abstract partial readonly async override virtual unsafe extern new ref",
}, {
	endings: "c h cc cpp cxx hpp hh hxx m mm cu ino", line: slashes, block: stars, traits: calls | lowBrace | tags,
	declares:  "type:struct,class,enum,union,concept,@interface,@implementation,@protocol value:#define",
	decorates: "typedef static inline extern const constexpr virtual explicit friend template",
}, {
	endings: "kt kts", line: slashes, block: stars, quotes: triple, traits: extends,
	declares: "function:fun type:class,interface,object,typealias value:val,var",
	decorates: "public private protected internal open abstract final sealed data enum annotation inner inline suspend " +
		"override operator infix tailrec companion const lateinit external value",
}, {
	endings: "swift", line: slashes, block: stars, quotes: triple,
	declares: "function:func,init,subscript type:class,struct,enum,protocol,extension,actor,typealias value:let,var",
	decorates: "public private fileprivate internal open final static override mutating convenience required indirect " +
		"async nonisolated @objc @MainActor @discardableResult",
}, {
	endings: "scala sc", line: slashes, block: stars, quotes: triple,
	declares:  "function:def type:class,trait,object,type,enum value:val,var",
	decorates: "private protected override final sealed abstract case implicit lazy inline",
}, {
	endings: "php", line: []string{"//", "#"}, block: stars,
	declares:  "function:function type:class,interface,trait,enum value:const module:namespace",
	decorates: "public private protected static final abstract readonly",
}, {
	endings: "rb rake", line: sharps,
	declares:  "function:def type:class module:module",
	decorates: "private protected public",
}, {
	endings: "sh bash zsh ksh", line: sharps, traits: calls | topOnly,
	declares: "function:function",
}, {
	endings: "lua", line: []string{"--"},
	declares:  "function:function",
	decorates: "local",
}, {
	endings: "ex exs", line: sharps, quotes: triple,
	declares: "function:def,defp,defmacro module:defmodule type:defprotocol,defimpl",
}, {
	endings: "proto", line: slashes, block: stars,
	declares: "type:message,enum,service function:rpc",
}, {
	endings: "zig", line: slashes,
	declares:  "function:fn value:const,var",
	decorates: "pub export inline extern",
}, {
	endings: "dart", line: slashes, block: stars, quotes: []string{`"""`, `'''`}, traits: calls,
	declares:  "type:class,enum,mixin,extension,typedef",
	decorates: "abstract final static const external factory",
}}

// languages maps the ending of a file's name to its language.
var languages = sync.OnceValue(func() map[string]*language {
	m := make(map[string]*language)
	for i := range table {
		l := &table[i]
		l.prepare()
		for e := range strings.FieldsSeq(l.endings) {
			m["."+e] = l
		}
	}
	return m
})

// languageOf is the language of a file, or nil.
func languageOf(name string) *language { return languages()[strings.ToLower(path.Ext(name))] }

// prepare makes of a row of the table what is needed to use it.
func (l *language) prepare() {
	l.keywords, l.modifiers = make(map[string]Kind), setOf(l.decorates)
	for group := range strings.FieldsSeq(l.declares) {
		kind, words, _ := strings.Cut(group, ":")
		for w := range strings.SplitSeq(words, ",") {
			l.keywords[w] = Kind(kind)
		}
	}
	marks := append([]string{`"`, `'`}, l.quotes...)
	marks = append(marks, l.line...)
	if l.block[0] != "" {
		marks = append(marks, l.block[0])
	}
	for _, m := range marks {
		l.special[m[0]] = true
	}
}
