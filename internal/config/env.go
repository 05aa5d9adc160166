package config

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"reprise/internal/config/place"
)

// Env is everything that reprise takes from its surroundings. It is passed in
// so that no test needs to change the process.
type Env = place.Env

// ErrNoHome is returned when a directory would have to be guessed because
// neither a home directory nor the variable that replaces it is there.
var ErrNoHome = place.ErrNoHome

// OSEnv reads the process's own surroundings. Only the main packages call it.
func OSEnv() (Env, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Env{}, fmt.Errorf("find working directory: %w (was it removed? change to one that exists)", err)
	}
	return Env{Vars: ParseVars(os.Environ(), runtime.GOOS), Dir: dir, GOOS: runtime.GOOS, Now: time.Now}, nil
}

// ParseVars turns "NAME=value" lines into a map; see place.ParseVars.
func ParseVars(environ []string, goos string) map[string]string {
	return place.ParseVars(environ, goos)
}

// Disown takes out of the environment what the files of the project in the working directory
// have clients put there; see place.ImposedBy.
func Disown(env Env) []place.Imposed { return place.Disown("", env.Vars, env.Dir) }

// Imposing are the variables about reprise that files of a project, in its directory, have
// clients set. Nobody heeds them.
func Imposing(env Env, dir string) []place.Imposed {
	vars := map[string]string{"REPRISE_HOOK_DEPTH": "", "REPRISE_AGENT": "", "REPRISE_RUN_ID": "", "AGENT_ROLE": ""}
	for _, name := range place.Vars() {
		vars[name] = ""
	}
	home, _ := env.Home() // unknown, no file is the user's own
	return place.ImposedBy("", vars, dir, home)
}
