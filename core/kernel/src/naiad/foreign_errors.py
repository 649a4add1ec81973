"""Errors of plugin and model code: contained on the event loop, except Ctrl-C, and described in a sentence.

Code that the event loop calls may raise anything, and must end neither the loop nor the requests of others:

    with logged("draining a request stage"):         # logs what is raised, and goes on after the block
        await stage.drained()

    with contained("binding an ensemble"):           # logs it, and raises an InternalError in its stead
        versions = prepared.bind(models, earlier)

    except BaseException as error:                   # where a block costs too much, or more is to be done
        raise_interrupt(error)                       # the user's Ctrl-C ends the program all the same
        refuse(InternalError(f"the stage failed: {describe_error(error)}"))

`describe_error` puts an error into a line, whatever its own code does when it is asked for its text.
"""

from naiad_config.errors import describe_error as describe_error
from naiad_config.foreign_errors import contained as contained
from naiad_config.foreign_errors import logged as logged
from naiad_config.foreign_errors import raise_interrupt as raise_interrupt
