from headrace.table.changelog_mode import ChangelogMode as ChangelogMode
