# recipe.sh: recipes out of sbeet-recipes(7). Sourced; $page is its source.

# NAME: the display below the line that names the recipe, as the page shows it.
recipe() {
	awk -v name="$1" '$1 == ".\\\"" && $2 == "recipe" { found = $3 == name; next }
		/^\.Bd/ { inside = found; next }
		/^\.Ed/ { inside = found = 0 }
		inside' "$page" | sed 's/^\\&//; s/\\e/\\/g' >"$scratch/recipe"
	[ -s "$scratch/recipe" ] || fail "the page has no recipe '$1'"
	cat "$scratch/recipe"
}

# NAME...: the page has these recipes and no others.
recipes_are() {
	sed -n 's/^\.\\" recipe //p' "$page" | sort >"$scratch/recipes"
	printf '%s\n' "$@" | sort | diff - "$scratch/recipes" || fail "the recipes are others: is each of them run?"
}
