"""The service: questions and documents over HTTP, and the page that asks them.

The web framework is imported here and nowhere else. `run` starts it, `app` puts it together; everything that
a question goes through on its way is a module of its own.
"""
