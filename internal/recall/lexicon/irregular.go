package lexicon

import (
	"strings"
	"sync"
)

// irregularForms are words that no rule leads back to their first form: the
// form first, then what is the same word. Only where the forms are not words of
// another meaning that is more usual (found, saw and left stay as they are in
// a text, and are met by a lower weight through related).
const irregularForms = `be: am are was were been being is
begin: began begun
bite: bit bitten
bleed: bled
blow: blew blown
break: broke broken
breed: bred
bring: brought
build: built
burn: burnt
buy: bought
catch: caught
choose: chose chosen
come: came
creep: crept
deal: dealt
die: dying
dig: dug
do: did done does doing
draw: drew drawn
dream: dreamt
drink: drank drunk
drive: drove driven
eat: ate eaten
fall: fell fallen
feed: fed
feel: felt
fight: fought
fly: flew flown
forget: forgot forgotten
forgive: forgave forgiven
freeze: froze frozen
get: got gotten
give: gave given
go: went gone goes
grow: grew grown
hang: hung
have: had has
hear: heard
hide: hid hidden
hold: held
keep: kept
kneel: knelt
know: knew known
lay: laid
lead: led
lean: leant
learn: learnt
lend: lent
lie: lying
light: lit
lose: lost
make: made
mean: meant
meet: met
overcome: overcame
pay: paid
prove: proven
quit: quitted
ride: rode ridden
ring: rang rung
rise: rose risen
run: ran
say: said
see: seen
seek: sought
sell: sold
send: sent
sew: sewn
shake: shook shaken
shine: shone
shoot: shot
show: shown
shrink: shrank shrunk
sing: sang sung
sink: sank sunk
sit: sat
sleep: slept
speak: spoke spoken
spell: spelt
spend: spent
spin: spun
stand: stood
steal: stole stolen
stick: stuck
strike: struck
swear: swore sworn
sweep: swept
swim: swam swum
swing: swung
take: took taken
teach: taught
tear: tore torn
tell: told
think: thought
throw: threw thrown
understand: understood
use: uses used using
wake: woke woken
wear: wore worn
weep: wept
win: won
withdraw: withdrew withdrawn
write: wrote written
child: children
man: men
woman: women
foot: feet
tooth: teeth
goose: geese
mouse: mice
person: people
life: lives
wife: wives
wolf: wolves
leaf: leaves
knife: knives
shelf: shelves
half: halves
loaf: loaves
calf: calves
datum: data
index: indices indexes indexing indexed
matrix: matrices
vertex: vertices
analysis: analyses
crisis: crises
good: better best
bad: worse worst
mom: mum mommy mummy
color: colour colours colors
favorite: favourite favourites favorites
grey: gray
theater: theatre theatres
center: centre centres
meter: metre metres
neighbor: neighbour neighbours neighbors
behavior: behaviour behaviours behaviors
program: programme programmes
license: licence licences
jewelry: jewellery
travel: travelling travelled traveller
cancel: cancelled cancelling cancellation
organize: organise organised organises organising organiser organisation
realize: realise realised realising
recognize: recognise recognised
apologize: apologise apologised
`

// irregular maps a form to the stem of its word. Made at first use: a program
// that never searches does not pay for it.
var irregular = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(irregularForms) {
		base, forms, _ := strings.Cut(strings.TrimSpace(line), ": ")
		s := root(base)
		m[base] = s
		for f := range strings.FieldsSeq(forms) {
			m[f] = s
		}
	}
	return m
})
