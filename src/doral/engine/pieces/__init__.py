"""The pieces that policies are made of, one file each; a folder holds the alternatives for one place.

A piece is a module with

    is_in(options, problem)   whether a policy has it (in a folder, its name is the word of the folder's option)
    check(options)            what it cannot be combined with
    memory(blueprint)         its branch of the state, if it has one, named like the module
    kernels                   named like the hooks and slots of `hooks.py` in which it takes part
    MEMORY                    the name of its branch, if that is not the module's

A folder's `__init__` says

    OPTION                    the option whose word is the name of the chosen file
    FILLS                     the kernels that each of its files has
    EMPTY, ALSO, HIDDEN       a word for none of them, further words, files that are no words of their own
    word(options, problem)    the file, where it does not follow from the option alone

What an option means, to whoever chooses it, stands at `doral.policy` (engine/policy.py), for all pieces together.
"""
