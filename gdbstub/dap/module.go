package dap

import (
	"errors"
	"fmt"
	"path"

	godap "github.com/google/go-dap"
)

// The requests modules, loadedSources and source: what the program is made of, and what is
// known of it.

// maxSources bounds the sources of one answer.
const maxSources = 20_000

func modules(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.ModulesArguments](raw)
	if err != nil {
		return nil, err
	}
	list := s.symbols.Modules()
	from := min(max(a.StartModule, 0), len(list))
	to := len(list)
	if a.ModuleCount > 0 {
		to = min(to, from+a.ModuleCount)
	}
	body := godap.ModulesResponseBody{Modules: []godap.Module{}, TotalModules: len(list)}
	for _, m := range list[from:to] {
		out := godap.Module{
			Id: hex(m.Base), Name: path.Base(m.Path), Path: m.Path, Version: m.BuildID, SymbolFilePath: m.SymbolFile,
			AddressRange: fmt.Sprintf("%#x-%#x", m.Base, m.End),
		}
		switch {
		case m.HasLines:
			out.SymbolStatus = "Symbols with source lines"
		case m.HasNames:
			out.SymbolStatus = "Names of functions only"
		default:
			out.SymbolStatus = "No symbols"
		}
		if !m.HasLines && m.BuildID != "" {
			out.SymbolStatus += ": a file with build-id " + m.BuildID + " in a --symbols folder has them"
		}
		body.Modules = append(body.Modules, out)
	}
	return body, nil
}

func loadedSources(s *session, _ *godap.Request, _ []byte) (any, error) {
	body := godap.LoadedSourcesResponseBody{Sources: []godap.Source{}}
	for _, file := range s.symbols.Sources(maxSources) {
		body.Sources = append(body.Sources, *s.source(file))
	}
	return body, nil
}

// source is asked for texts that a client does not find itself. A server does not read files
// for whoever connects to it.
func source(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.SourceArguments](raw)
	if err != nil {
		return nil, err
	}
	if a.Source == nil || a.Source.Path == "" {
		return nil, errors.New("a recording does not hold the sources")
	}
	return nil, fmt.Errorf("a recording does not hold the sources: %s is read where the editor runs; \"sourceMap\" in the configuration says where it lies there", clip(a.Source.Path))
}
