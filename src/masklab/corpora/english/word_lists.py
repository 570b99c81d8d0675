"""Word lists of the lexicon: plain data, one lemma per word.

Nouns: `singular` or `singular/plural`. Verbs: `base`, `base*` (doubles its last
consonant) or `base/past/participle` (`base/past` when both are alike). Verbs whose
past equals their base (cut, read) are left out: their agreement would be invisible.
A verb is strict about its frame: an intransitive never takes an object and a
transitive never lacks one.
"""

MALE = """man/men boy king prince brother uncle husband father grandfather son nephew waiter actor
gentleman/gentlemen policeman/policemen fireman/firemen monk wizard groom duke"""
FEMALE = """woman/women girl queen princess sister aunt wife/wives mother grandmother daughter niece waitress
actress lady policewoman/policewomen nun witch bride duchess ballerina"""
NEUTRAL = """teacher doctor student nurse lawyer artist farmer pilot baker singer dancer writer driver engineer
scientist manager neighbor child/children person/people customer guest tourist dentist cousin friend banker senator
librarian plumber barber"""
ANIMAL = """dog cat horse cow rabbit lion tiger bear wolf/wolves fox monkey elephant goose/geese mouse/mice duck parrot
kitten puppy goat pony squirrel turtle"""
THINGS = {
    "food": """apple banana orange cake cookie sandwich pie pizza pear peach cherry carrot potato/potatoes
tomato/tomatoes mango/mangoes muffin burger salad pancake strawberry sausage loaf/loaves""",
    "drink": "coffee tea beer soda cocktail smoothie milkshake lemonade espresso cider cappuccino",
    "cloth": "dress shirt jacket sweater coat hat skirt glove sock blouse uniform suit apron vest cap scarf/scarves",
    "vehicle": "car truck bus bicycle taxi train boat van motorcycle tractor scooter ambulance wagon yacht",
    "place": """museum school library restaurant hospital garden park church theater bakery hotel office kitchen cafe
market castle bank village beach mall""",
    "text": "book letter story poem novel essay magazine newspaper article diary report play script speech",
    "furn": "table chair desk sofa bench bed shelf/shelves lamp mirror bookcase stool couch dresser cradle",
    "tool": "hammer knife/knives axe shovel saw wrench drill ladder brush rake screwdriver needle chisel",
    "instr": "piano violin guitar flute drum trumpet cello harp clarinet banjo saxophone",
    "plant": "rose tree tulip flower bush fern cactus lily daisy orchid vine leaf/leaves oak",
    "door": "door window gate drawer box cabinet suitcase trunk jar bottle locker chest",
    "jewel": "ring necklace bracelet diamond earring crown watch brooch pearl ruby pendant",
}
NAMES = {
    "m": """John David Peter Thomas Robert Michael James William Daniel George Henry Paul Mark Kevin Brian Carlos Steven
Eric Simon Victor Oscar Martin Frank Walter Adam""",
    "f": """Mary Susan Linda Anna Julia Sarah Emma Laura Karen Alice Helen Nancy Diane Maria Rachel Emily Carol Tina
Clara Sophie Irene Monica Grace Martha Eva""",
}

VERBS = {
    # a person does it to an object of the class the frame is named after
    "hum": """help thank hug* praise criticize trust blame insult respect admire kiss invite see/saw/seen
forgive/forgave/forgiven defend know/knew/known visit greet teach/taught""",
    "animal": "feed/fed train tame rescue pet* adopt groom ride/rode/ridden leash stroke",
    "food": "eat/ate/eaten pick cook taste bake devour slice fry freeze/froze/frozen serve chew",
    "drink": "drink/drank/drunk sip* pour spill stir* gulp brew",
    "cloth": "wear/wore/worn fold sew/sewed/sewn wash tear/tore/torn knit* mend hem*",
    "vehicle": "drive/drove/driven park rent repair steer tow race inspect",
    "place": "enter leave/left clean explore tour renovate decorate photograph",
    "text": "write/wrote/written publish edit quote translate review print revise recite",
    "furn": "polish paint build/built assemble dust varnish shake/shook/shaken",
    "tool": "use sharpen hold/held grip* borrow drop* grab* swing/swung",
    "instr": "play tune practice master strum*",
    "plant": "grow/grew/grown water trim* prune cultivate harvest plant",
    "jewel": "inherit hide/hid/hidden engrave steal/stole/stolen pawn appraise",
    "door": "open close slam* break/broke/broken crack seal",
    # any artefact
    "art": "buy/bought sell/sold find/found choose/chose/chosen lose/lost bring/brought take/took/taken need keep/kept",
    "lovepos": "love adore like cherish",
    "loveneg": "hate dislike detest despise",
    "dit": "give/gave/given send/sent show/showed/shown offer hand lend/lent",
    "talk": "talk argue worry dream joke lecture",
    # people alone, with clauses and with infinitives
    "intr": """sleep/slept smile laugh cry sneeze dance swim*/swam/swum yawn shout relax complain jog* cough whisper
faint blush snore speak/spoke/spoken""",
    "go": "go/went/gone walk travel hurry return march run*/ran/run",
    "say": "say/said claim think/thought believe announce insist suspect",
    "know": "remember discover forget/forgot/forgotten notice recall reveal",
    "wonder": "wonder ask",
    "want": "want hope try decide plan* refuse promise agree intend attempt",
    "manage": "manage",
    "fail": "fail",
    "seem": "seem tend happen continue begin*/began/begun",
    "persuade": "persuade force convince urge encourage remind tell/told",
    "expect": "expect assume declare imagine",
    "enjoy": "enjoy avoid finish resume",
    # animals and things
    "aintr": "sleep/slept jump wander rest growl hide/hid/hidden stretch flee/fled limp roar",
    "aanimal": "chase bite/bit/bitten hunt scratch attack follow",
    "afood": "sniff eat/ate/eaten nibble steal/stole/stolen devour",
    "ahum": "scare lick frighten approach nudge",
    "vintr": "stop* start crash turn swerve rattle accelerate",
    "inchvehicle": "stop* start crash turn",
    "inchdoor": "open close slam* break/broke/broken crack",
    "tintr": "vanish disappear fall/fell/fallen appear",
    "lfood": "rot* burn cool",
    "ldrink": "cool evaporate ferment",
    "lcloth": "shrink/shrank/shrunk fade dry",
    "lplant": "bloom wilt die sprout",
    "psych": "amuse annoy surprise delight bore shock please impress disappoint irritate bother",
}

ADJECTIVES = {
    "hum": """tall young old clever brave kind shy polite honest lazy happy sad angry tired rich famous friendly nervous
proud strong rude generous patient""",
    "animal": "wild furry hungry fierce playful loyal sleepy spotted gentle",
    "food": "delicious fresh sweet tasty spicy salty ripe juicy crispy sour",
    "drink": "cold hot bitter fizzy refreshing delicious sweet strong",
    "cloth": "warm woolen striped elegant tight loose silky fashionable dirty",
    "vehicle": "fast electric rusty powerful noisy slow speedy",
    "place": "crowded quiet ancient modern peaceful spacious famous cozy",
    "text": "long funny popular detailed scary romantic famous",
    "furn": "wooden comfortable antique sturdy heavy dusty",
    "tool": "sharp useful heavy blunt rusty handy",
    "instr": "loud expensive antique electric melodious",
    "plant": "leafy exotic thorny tall fragrant",
    "door": "wide narrow wooden locked heavy",
    "jewel": "precious shiny golden sparkling expensive silver",
    "color": "red blue green yellow black white brown purple",
    "size": "big small large tiny huge",
    "pos": "wonderful excellent great lovely amazing superb fantastic perfect charming good brilliant",
    "neg": "terrible awful horrible dreadful bad disappointing dull ugly unpleasant poor boring",
}
# participles used as adjectives, with the past form that may not replace them
PARTICIPLES = {
    "food": "frozen/froze forgotten/forgot chosen/chose",
    "cloth": "worn/wore torn/tore stolen/stole forgotten/forgot",
    "vehicle": "stolen/stole broken/broke",
    "text": "forgotten/forgot hidden/hid stolen/stole",
    "tool": "broken/broke stolen/stole forgotten/forgot",
    "instr": "broken/broke stolen/stole forgotten/forgot",
    "door": "broken/broke hidden/hid",
    "jewel": "stolen/stole hidden/hid broken/broke",
    "furn": "broken/broke chosen/chose",
    "plant": "fallen/fell",
}

CLOSED = {
    "BePres(m)": "is", "BePres(f)": "is", "BePres(x)": "is", "BePres(p)": "are",
    "BePast(m)": "was", "BePast(f)": "was", "BePast(x)": "was", "BePast(p)": "were",
    "Have(m)": "has", "Have(f)": "has", "Have(x)": "has", "Have(p)": "have",
    "Do(m)": "does", "Do(f)": "does", "Do(x)": "does", "Do(p)": "do",
    "Modal": "can could will would should might must",
    "PronS(m)": "he", "PronS(f)": "she", "PronS(x)": "it", "PronS(p)": "they",
    "PronO(m)": "him", "PronO(f)": "her", "PronO(x)": "it", "PronO(p)": "them",
    "Refl(m)": "himself", "Refl(f)": "herself", "Refl(x)": "itself", "Refl(p)": "themselves",
    "Poss": "my your his her our their",
    "DemSg": "this that", "DemPl": "these those",
    "StrongSg": "every each", "StrongPl": "all most",
    "WeakSg": "a one another", "WeakPl": "some many several two three four",
    "Elliptic": "two three four five several many some",
    "Number": "two three four five six seven ten",
    "Adverb": "often always usually really certainly probably clearly still also definitely frequently",
    "Manner": "quickly slowly quietly loudly carefully happily sadly gently eagerly politely nervously proudly",
    "Degree": "very quite extremely rather really",
    "Near": "near behind beside",
    "At": "in at near outside",
    "Under": "under near behind",
    "Before": "before after without while",
    "Because": "because although when while",
    "Period": "week month year summer night winter",
    "Weekday": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "Raising": "likely certain sure bound unlikely apt",
    "Control": "eager willing reluctant able unable ready",
    "Tough": "easy hard difficult fun impossible tough",
    "Clear": "clear obvious true possible",
    "CompUp": "taller older stronger richer faster louder happier kinder",
    "CompDown": "shorter younger weaker poorer slower quieter sadder meaner",
}  # fmt: skip
