package app

import (
	"fmt"
	"strings"
	"sync"

	"coder/internal/config"
	"coder/internal/ui/i18n"
)

// forMachines reports whether programs read what this run writes. They are
// spoken to in one language only.
func (f *flags) forMachines() bool {
	return f.json || f.events != "" || f.outputFormat == "json" || f.outputFormat == "stream-json"
}

// wordsFor speaks the language of the person: that of the flag, of the
// settings, or of the environment.
func wordsFor(env Env, fl *flags) *i18n.Printer {
	if fl.forMachines() {
		return i18n.For(i18n.English)
	}
	lang := fl.lang
	if h, err := locate(env, fl); lang == "" && err == nil {
		conf, _, _ := config.Load(h.loadOptions()) // what is wrong with it is said by those who need it
		lang = conf.UI.Lang
	}
	return i18n.For(i18n.Choose(lang, env.Getenv))
}

// wordsOf speaks the language of the person, whatever their command line is
// worth. Where something is stuck, no file is read for it.
func wordsOf(env Env, stuck bool) *i18n.Printer {
	if stuck {
		return i18n.For(i18n.Choose(askedLang(env.Args), env.Getenv))
	}
	fl, err := parseFlags(env.Args)
	if err != nil {
		fl = &flags{lang: askedLang(env.Args)}
	}
	return wordsFor(env, fl)
}

// askedLang is the language that a command line asks for, though it may be
// wrong elsewhere.
func askedLang(args []string) (lang string) {
	for i, arg := range args {
		switch value, joined := strings.CutPrefix(arg, "--lang="); {
		case joined:
			lang = value
		case arg == "--lang" && i+1 < len(args):
			lang = args[i+1]
		}
	}
	return lang
}

// warner tells the person on stderr what is not part of any turn.
func warner(env Env, fl *flags) func(string) {
	words := sync.OnceValue(func() *i18n.Printer { return wordsFor(env, fl) })
	return func(text string) { fmt.Fprintln(env.Stderr, "coder: "+words().Said(text)) }
}
