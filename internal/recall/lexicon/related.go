package lexicon

import (
	"strings"
	"sync"
)

// relatedWords are words that are used for one another: a line of words means
// each other's nearly the same; "kind > members" means that a question about
// the kind may be answered by a member, which counts less. It is a table of
// everyday and of technical English, kept short on purpose: it helps where a
// question and what it asks for have no word in common, and costs little where
// it is wrong, because a related word weighs less than the word itself.
const relatedWords = `
find found discover locate
leave left depart quit
see saw watch notice
begin start launch
end finish complete conclude
stop quit cease halt
buy purchase get bought order
sell sale sold
rent lease hire
big large huge enormous
small tiny little
happy glad thrilled delighted pleased excited joy
sad upset unhappy down grief
angry mad furious annoyed
afraid scared fear nervous terrified anxious worried
tired exhausted sleepy
proud pride
funny hilarious laugh
love adore enjoy like fond
hate dislike
favorite best love
want wish hope would
plan intend going
decide decision choose chose choice pick pick opt
think opinion believe view
talk speak chat discuss conversation
tell say mention explain
ask question request
answer reply respond
help assist support aid
job work career profession occupation employment employer company position role
boss manager supervisor employer
colleague coworker workmate teammate team
resign quit notice leave
fire layoff laid redundancy
promotion promoted head lead
earn salary pay wage income
money cash fund
cost price pay paid expensive
cheap inexpensive affordable
company business firm startup
shop store bakery
customer client
movie film cinema
book novel read
author writer wrote
picture photo photograph image
paint painting painter drawing art
draw sketch drawing
sing song singer
music song band concert
instrument > piano guitar violin cello drum flute ukulele bass trumpet saxophone clarinet harp banjo keyboard
musician band singer drummer
drum drummer percussion percussionist
band group ensemble orchestra choir
concert gig show performance recital
perform play performance stage sing
dance dancer ballet
theater play stage drama
role part character
game play
sport > football soccer tennis basketball running swimming climbing cycling baseball hockey yoga volleyball golf skiing surfing boxing
exercise workout train gym fitness run
race marathon run
run running jog
bike bicycle cycle ride
hike hiking trail walk trek
climb climbing boulder
swim swimming pool
camp camping tent
travel trip journey visit vacation holiday tour fly went
trip vacation holiday travel
vacation holiday trip break getaway
country > canada mexico france italy spain germany japan china india brazil england ireland portugal greece turkey sweden norway vietnam thailand australia alaska scotland
city town
live reside home house apartment stay
move moved relocate moving
house home apartment flat place
apartment flat
basement cellar
roof ceiling
heat heating boiler radiator stove
yard garden backyard
plant grow garden
vegetable > garlic bean tomato carrot potato onion pumpkin lettuce cabbage pea pepper spinach
fruit > apple banana pear orange mango strawberry peach plum cherry
flower > rose tulip daffodil sunflower daisy lily orchid
food eat meal dish cook
meal breakfast lunch dinner supper
cook bake recipe kitchen
bread loaf bake baker
dessert cake pudding pie cookie
drink coffee tea beer wine
restaurant cafe diner
animal > dog cat fox bear bird horse rabbit squirrel owl fish whale turtle snake hamster deer wolf bulldog greyhound
pet > dog cat rabbit hamster fish parrot puppy kitten turtle
dog puppy hound
cat kitten
bird owl parrot
baby newborn born birth infant
pregnant expecting due baby
child kid kids son daughter
kid child
son boy
daughter girl
twin sibling
parent mother father mom dad
mother mom
father dad
sibling brother sister
grandmother grandma granny
grandfather grandpa granddad
niece nephew aunt uncle
aunt auntie niece
spouse husband wife partner
husband wife married spouse
partner boyfriend girlfriend
marry wedding married marriage wed bride
propose engaged engagement ring
divorce separated breakup split
breakup broke split
date dating
friend buddy pal
relationship partner dating single
family relative parent sibling
neighbor next door
landlord landlady
party celebration celebrate birthday
celebrate celebration party
birthday party turned
gift present gave give
present gift
charity donate fundraise fundraiser raise cause
raise collect money fund
volunteer volunteering shelter charity
school college university class
university college degree
study course class degree learn studying
student pupil class
teach teacher lesson tutor class
lesson class teacher course
exam test quiz midterm pass
mark grade score
graduate graduation degree
thesis dissertation phd doctorate defence
doctor physician
doctorate doctor phd
scientist researcher
research study thesis
hospital clinic ward
ill sick illness disease
injury hurt injured broke broken strain wound sprain
hurt injury pain
pain hurt ache
surgery operation
operation surgery
medicine medication drug
therapy therapist counseling counselor
health healthy
stress stressed pressure anxiety
relax calm unwind
sleep asleep nap
dream goal aspiration
hobby interest pastime enjoy
interest hobby passion
pottery ceramics clay
ceramics pottery clay
mug cup
knit sew crochet
craft handmade homemade
build built construct made
make made create
repair fix mend restore
fix repair solve resolve cure
break broken broke
clean tidy
car truck van vehicle
vehicle > car truck van bus bike motorcycle scooter
train railway station
plane flight fly airport
boat ship ferry sail
beach sea coast seaside shore ocean
sea ocean coast
mountain peak summit
lake pond
river stream
forest wood
storm rain flood
snow winter
weather rain snow sun storm
color > red blue green yellow orange purple black white pink grey brown
religion church faith pray
church faith
award prize win won medal trophy
prize award place win
win won victory
compete competition contest tournament
competition contest tournament fair
join joined member
member join
club group team
meet met encounter
visit visited see
invite invitation
attend went join participate
participate attend join part
conference congress meeting
speech talk
meeting conference
learn learnt study
practice rehearse rehearsal training
experience
accept accepted agree
reject decline refuse turn
decline refuse reject turned
apply application applied
accepted got in admitted
receive got get
lose lost
save rescue
rescue save shelter
foster adopt adoption rehome
adopt adoption
phone call rang
email mail message
mail email
letter mail
internet online web
computer laptop pc
technology tech computer
video stream film
camera photo
clothes wear dress jacket
shoe boot trainer sneaker
furniture > couch table chair sofa bed desk shelf
couch sofa
old age
young kid
age old turned year
year annual
month monthly
week weekly
weekend saturday sunday
weekday > monday tuesday wednesday thursday friday
season > spring summer autumn winter fall
autumn fall
evening night
morning early
time hour minute
long duration
often frequently
sometimes occasionally
name called named
call named
nickname called
reason because why
cause reason because
problem issue trouble difficulty
difficult hard tough challenging
hard difficult tough
easy simple
change switch move
switch change move
advice suggest recommend tip
recommend suggest
suggest idea
idea thought
inspire inspiration motivate
motivate inspire
feel feeling emotion
remember memory recall
secret hidden
danger dangerous risk
police officer
law legal lawyer
politics election vote
news announce announcement
event festival party concert show
festival fair
museum exhibit gallery
community local
nature outdoors wildlife
environment climate
support encourage
friendship friend
kind type sort
symbol meaning represent
identity
future plan
past history
childhood kid young child
own have possess
size big large
dozen twelve
couple two pair
hundred
own
alive living
share half halves
fire flame
glad happy
error failure fail exception bug crash panic
fail failure error broke
crash panic fail
bug defect error
fix solution workaround
cause due root
slow latency performance seconds timeout
fast quick speed
speed fast performance
timeout deadline hang
hang stuck hung
memory heap oom ram
disk space storage
storage bucket store disk
store save keep persist
database db postgres postgresql sql
db database
table schema
migrate migration schema
query sql
index reindex
cache redis
queue job worker background
worker job queue
job task
server service host
service api server
endpoint api route url
port listen
listen port
config configuration setting option
setting config
environment env
secret credential password token key
credential secret login key
password secret login
login session auth sign
auth authentication login
permission access approve approval
approve approval review allow
review approval
deploy release rollout production ship live
release deploy version
live production
production prod
rollback revert undo back
undo revert rollback
version upgrade release
upgrade update bump
update upgrade renew
install installation setup
setup install
dependency package library
package dependency
build compile
compile build
test tests testing
flaky flake intermittent
fake mock stub
lint linter
format formatter
log logs logging
logging log
monitor monitoring alert
alert notification alarm
notification alert message
trace span tracing
dashboard chart grafana
metric measure
container docker image
image container docker
docker container
cluster kubernetes k8s pod
pod container
kubernetes k8s
frontend client web ui
backend server
ui interface frontend
button checkout
browser chrome firefox safari chromium
branch git
commit git push
push commit
repository repo
repo repository
merge pull
encode encoding decode charset
parse parser parsing
regex regexp pattern
certificate tls ssl
concurrency race lock mutex
lock mutex deadlock
race concurrent
thread goroutine
null nil none
function method
file path
directory folder
folder directory
limit quota maximum max
quota limit allowance
allowance quota limit
backup restore
restore backup
schedule cron scheduled
duplicate twice double
twice duplicate double
remove delete drop
delete remove
add create
replace swap instead
instead replace
convention rule naming
responsible owner contact
owner maintain maintainer responsible
contact ask
license copyright
invoice bill
bill invoice
money currency amount price cent
price amount cost
payment pay stripe
refund return
inventory stock warehouse
stock inventory
order purchase
search find query
user customer
document doc
translation translate locale i18n
font umlaut
character letter
timezone utc time
clock time
outage incident down downtime
incident outage
laptop machine computer
exam interview appointment
hike climb outdoors trail
game > chess poker puzzle nintendo playstation xbox console videogame boardgame
console playstation xbox nintendo switch
gaming game tournament stream
tournament competition match championship
team coach player
score point goal
injury accident crash
accident crash injured hurt
vehicle car drive
drive driver driving road
dish > pasta pizza soup salad curry rice stew noodles sushi taco burger sandwich
snack chip popcorn cookie chocolate candy
dessert > cake pie cookie brownie pudding icecream tart pastry cupcake muffin
beverage > coffee tea wine beer juice soda cocktail smoothie
ingredient flour sugar butter cheese chocolate
meat > chicken beef pork steak turkey ham
vegan vegetarian diet
diet eat healthy nutrition weight
weight pound kilo lose gain
art > painting drawing sculpture pottery photography
artist painter musician writer
music > jazz rock classical pop blues folk soul
musician > guitarist pianist drummer violinist singer
subject topic theme about
genre > fantasy mystery thriller romance horror comedy drama
book > novel memoir poetry biography trilogy
poem poetry poet
story tale narrative write
write writing script blog journal
journal diary
read reading finish
movie > comedy drama thriller documentary
series show episode season tv
hero idol inspire
language > spanish french german italian japanese english chinese portuguese
nationality country from born
origin from grew hometown born
hometown grew childhood from
immigrate moved country
state > california florida texas oregon vermont alaska
city > paris london rome berlin tokyo barcelona boston chicago seattle toronto dublin
abroad overseas country
hotel hostel inn stay
sightsee tour visit
landmark tower bridge castle monument
transportation > bus train plane car bike ferry scooter tram
relative > aunt uncle cousin niece nephew grandma grandpa
family > mother father brother sister son daughter wife husband parent
pet > lizard guineapig goldfish tortoise bunny pony
breed > greyhound poodle labrador retriever terrier bulldog beagle husky shepherd
bunny rabbit
wild wildlife animal
insect > bee butterfly ant beetle
tree > oak pine pear apple willow maple plum cherry
garden > flower vegetable herb plant
bloom flower
occupation > nurse teacher doctor engineer lawyer chef baker carpenter plumber mechanic accountant driver
profession > nurse teacher doctor engineer lawyer chef baker carpenter plumber mechanic accountant driver
job > nurse teacher engineer chef baker driver waiter clerk
chef cook baker
entrepreneur business startup founder
invest investor fund funding sponsor
fund funding grant sponsor
sponsor brand deal
brand company label
advertise campaign marketing promote
campaign crowdfunding promote
network contact connect
skill learn ability talent
talent gift skill
career path goal job
internship intern trainee
retire retirement retired
graduate finish degree diploma
degree bachelor master phd
certificate diploma certification
counseling counselor therapist mental
mental anxiety depression therapy
meditate meditation yoga mindful
yoga pilates stretch
cope handle deal manage
handle cope manage deal
challenge difficulty struggle obstacle
struggle hard difficult tough
overcome beat fight
motivate motivation encourage drive
achieve achievement accomplish success milestone
achievement award milestone accomplish win
success successful win thrive
fail failure lose rejected
reject rejection turned
regret sorry wish
apologize sorry
forgive sorry
grateful thankful thank appreciate
value important matter
important matter meaningful significant
meaning significant symbol
tradition holiday custom ritual
holiday > christmas thanksgiving easter halloween
christmas xmas holiday
halloween costume
costume dress dressed
decorate decoration ornament
necklace jewelry pendant
jewelry > ring necklace bracelet earring
ring engagement
clothing > dress shirt jacket shoe hat suit boot coat
fashion clothes style design
design designer designed
tattoo ink
hair haircut
pride parade
parade march
transgender lgbtq gay queer
gender identity
community group neighborhood
volunteer help serve donate
shelter rescue homeless
homeless shelter
refugee immigrant
veteran military soldier army
military army soldier
protest rally activist
activist advocate rights
religious faith church
disaster flood fire storm earthquake hurricane
burn fire
lost loss died death
die died death passed lost
death died passed funeral
funeral died death
grandparent grandma grandpa grandmother grandfather
illness cancer diabetes flu asthma allergy
allergy allergic
doctor checkup appointment
sleep insomnia rest
rest break relax
pain ache sore
bone wrist ankle leg arm
limb arm leg
tooth dentist teeth
sunset sunrise
sunrise sunset
sky star moon
star astronomy telescope
space astronomy planet
science scientist research experiment
robot robotics
app software program code
program code software develop
develop build create developer
developer programmer engineer
website blog site
social instagram facebook post
post share blog
photo > portrait selfie landscape
portrait photo
camera lens photography
screen monitor display
device phone tablet gadget
gadget device
upgrade renovate remodel
renovate remodel restore renovation
room kitchen bedroom garage attic
floor carpet
rent lease tenant
mortgage loan house
loan debt borrow
debt loan owe
budget money spend
spend cost paid
save savings money
own bought
favorite prefer
prefer favorite rather
similar alike common
different unlike
common both share
alone solo
together couple joint
early before
recent lately new
first initial start debut
last final previous
final last
weekly week
annual yearly
daily day everyday
surprise surprised shocked
shock surprise
joke funny
scary afraid horror
noise loud
quiet silent calm
cold freeze winter
hot warm heat
beautiful gorgeous stunning lovely
ugly
delicious tasty yummy
bad terrible awful
good great wonderful awesome
`

// Relation leads from a word to another, with the weight that a match of the
// other has against one of the word itself.
type Relation struct {
	Term   string
	Member bool // of the kind that the word names
}

// Related are the words that a stem may stand for or be stood for by.
func Related(term string) []Relation { return related()[term] }

// related maps stems to related stems. Made at first use.
var related = sync.OnceValue(func() map[string][]Relation {
	m := map[string][]Relation{}
	add := func(from, to string, member bool) {
		if from == to {
			return
		}
		for _, r := range m[from] {
			if r.Term == to {
				return
			}
		}
		m[from] = append(m[from], Relation{to, member})
	}
	for line := range strings.Lines(relatedWords) {
		kind, members, isKind := strings.Cut(line, " > ")
		if isKind {
			k := normal([]byte(strings.TrimSpace(kind)), true)
			for w := range strings.FieldsSeq(members) {
				add(k, normal([]byte(w), true), true)
			}
			continue
		}
		ws := strings.Fields(line)
		for i := range ws {
			ws[i] = normal([]byte(ws[i]), true)
		}
		for _, a := range ws {
			for _, b := range ws {
				add(a, b, false)
			}
		}
	}
	return m
})
